"""# HL101 a handle is opened in the data set's `__init__`

## Bad

```python
import h5py
from torch.utils.data import Dataset

class Scans(Dataset):
    def __init__(self, path):
        self.file = h5py.File(path)

    def __getitem__(self, index):
        return self.file["scans"][index]
```

## Good

```python
import h5py
import holdfast
from torch.utils.data import Dataset

class Scans(Dataset):
    def __init__(self, path):
        self.file = holdfast.per_worker(h5py.File, path)   # opened on first use, once in each worker

    def __getitem__(self, index):
        return self.file["scans"][index]
```

## Why

Forked workers share one offset and one cache: they read each other's records, without an error. Spawned workers cannot
be given an open handle at all: it cannot be pickled.

With stock torch, open it on first use in `__getitem__`, and leave it out of the pickle.

## See

`holdfast explain F43` (786 of 1000 records wrong), `holdfast explain F05`; pytorch#11887, pytorch#11929,
deeptools/pybigwig#50.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..attributes import made_in_init
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_OPENERS = (
    *("open", "io.open", "gzip.open", "bz2.open", "lzma.open", "tarfile.open", "zipfile.ZipFile", "tarfile.TarFile"),
    *("h5py.File", "tables.open_file", "netCDF4.Dataset", "pyBigWig.open", "pysam.AlignmentFile", "pysam.FastaFile"),
    *("lmdb.open", "lmdb.Environment", "sqlite3.connect", "psycopg2.connect", "pymysql.connect", "duckdb.connect"),
    *("rasterio.open", "openslide.OpenSlide", "cv2.VideoCapture", "decord.VideoReader", "av.open", "mmap.mmap"),
    *("socket.socket", "socket.create_connection", "redis.Redis", "pymongo.MongoClient", "requests.Session"),
    *("boto3.client", "boto3.resource", "httpx.Client", "grpc.insecure_channel", "google.cloud.storage.Client"),
    *("fsspec.open", "shelve.open", "dbm.open", "pyfaidx.Fasta", "soundfile.SoundFile"),
)


def check(script: Script) -> Iterator[Remark]:
    for made in made_in_init(script, *_OPENERS):
        yield Remark(
            made.call,
            f"{made.dataset.name} opens {made.attribute} with {made.maker} in __init__: "
            "forked workers share it, spawned ones cannot be given it",
            f"{made.attribute} = holdfast.per_worker({made.maker}, ...)  # or open it on first use in __getitem__",
        )
