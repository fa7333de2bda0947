"""What is in a data set that goes wrong in several processes, named by the path to it.

* ``handles``     open files, sockets, databases, threads, locks and iterators
* ``generators``  random generator objects, which repeat themselves in every worker
* ``lists``       many small objects, whose memory grows in every forked worker
* ``paths``       relative paths, and folders that explain an empty data set

All of them look along ``graph.walk`` and run no code of the user's: no property, no ``__getattr__``, no iteration over
an object that is not Python's own. They never raise.
"""
