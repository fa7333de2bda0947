"""``python -m holdfast``: the same as the command ``holdfast``."""

from .cli import main

if __name__ == "__main__":
    main()
