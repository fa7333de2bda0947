"""Every sample of a data set, read once: which are corrupt, deadly, slow or odd.

In the workers:

* ``look``      what a sample looks like, in a few words that can be compared
* ``reader``    reads samples, and tells of a stretch of them in a few hundred bytes
* ``stream``    the same for a stream

In the command:

* ``plan``      which samples are to be read, and in what order
* ``ranges``    which have been
* ``times``     how long they took
* ``votes``     what most of them look like, and who does not
* ``survey``    all that is known so far
* ``progress``  the file that a scan goes on from
* ``roll``      the file that the loader understands
* ``writing``   files that cannot be written, told in a sentence
* ``scan``      does it; ``streaming`` for a stream
* ``report``    what was found, as plain values
"""
