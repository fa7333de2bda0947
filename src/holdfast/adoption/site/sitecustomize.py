# Imported by every interpreter of a program that `holdfast run` started, before anything of its own; also by those
# that are older than ours or have no holdfast: plain words only, and no error.
import importlib
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]  # as the program would find it
if "HOLDFAST_RUN" in os.environ and sys.version_info >= (3, 10):
    try:
        from holdfast.adoption.arrival import arrive
    except ImportError:
        pass  # another Python, which does not have us
    else:
        arrive()

ours = sys.modules.pop("sitecustomize")
try:
    importlib.import_module("sitecustomize")  # the program's own, which ours hides
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = ours  # Python wants to find what it has imported
