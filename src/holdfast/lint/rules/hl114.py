"""# HL114 workers use a connection that the module opened

## Bad

```python
import boto3
from torch.utils.data import Dataset

s3 = boto3.client("s3")

class Images(Dataset):
    def __getitem__(self, index):
        return s3.get_object(Bucket="images", Key=self.keys[index])
```

## Good

```python
import boto3
import holdfast
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, keys):
        self.keys = keys
        self.s3 = holdfast.per_worker(boto3.client, "s3")   # one in each worker

    def __getitem__(self, index):
        return self.s3.get_object(Bucket="images", Key=self.keys[index])
```

## Why

Forked workers share its socket: answers go to whoever reads first, and clients with threads of their own (gRPC,
MongoDB) hang in the child. With stock torch, make it on first use, kept by `os.getpid()`.

## See

`holdfast explain F43`; grpc#13873, grpc#15334.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..contexts import ItemFunction
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_CLIENTS = (
    *("grpc.insecure_channel", "grpc.secure_channel", "boto3.client", "boto3.resource", "boto3.Session"),
    *("redis.Redis", "redis.StrictRedis", "redis.from_url", "pymongo.MongoClient", "sqlite3.connect", "duckdb.connect"),
    *("psycopg2.connect", "psycopg.connect", "pymysql.connect", "MySQLdb.connect", "sqlalchemy.create_engine"),
    *("requests.Session", "httpx.Client", "google.cloud.storage.Client", "elasticsearch.Elasticsearch"),
    *("lmdb.open", "h5py.File", "zipfile.ZipFile", "tarfile.open", "socket.create_connection", "socket.socket", "open"),
)


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to(*_CLIENTS):
        assign = script.parent(call)
        if not isinstance(assign, ast.Assign) or assign not in script.tree.body or not script.may_start_workers:
            continue
        for target in assign.targets:
            item = _used_in(script, target.id) if isinstance(target, ast.Name) else None
            if isinstance(target, ast.Name) and item is not None:
                maker = ast.unparse(call.func)
                yield Remark(
                    call,
                    f"{target.id} = {maker}(...) is made once in this module, and {item.via} uses it in every worker",
                    f"{target.id} = holdfast.per_worker({maker}, ...)  # or make it on first use in each process",
                )


def _used_in(script: Script, name: str) -> ItemFunction | None:
    for node in script.nodes(ast.Name):
        if node.id == name and isinstance(node.ctx, ast.Load):
            item = script.item_of(node)
            if item is not None and script.resolve(node):
                return item
    return None
