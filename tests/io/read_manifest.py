"""Reads checkpoints with h5py alone: what docs/checkpoint_format.md promises to readers without nsp.

read_manifest.py WRITE_SAMPLE_PROGRAM; exits with 77 if there is no h5py.
"""
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as why:
    print("skipped:", why)
    sys.exit(77)

RUN = "r7"
SHAPES = {
    "/model/embedding.wte": ("fp32", (50, 8)), "/model/blocks.0.ln1.weight": ("fp32", (8,)), "/model/blocks.0.mixer": ("fp32", (3, 4, 5, 6)),
    "/model/half": ("bf16", (9, 7)), "/state/adamw.m/embedding.wte": ("fp64", (50, 8)), "/replica_0000/count": ("int64", (1,)),
    "/replica_0001/count": ("int32", (3,)), "/replica_0001/flags": ("uint8", (5, 3)), "/state/none": ("fp32", (0, 4)),
}


def values(dataset):
    """Numbers of a data set; bf16 lies there as the upper halves of fp32."""
    data = dataset[...]
    if dataset.attrs["dtype"].decode() == "bf16":
        return (data.astype(np.uint32) << 16).view(np.float32)
    return data


def expected(name, shape, step):
    n = int(np.prod(shape))
    return ((np.arange(n) * 7 + len(name) * 3 + step) % 251).reshape(shape)


def check_whole(folder, step):
    with h5py.File(folder + "/manifest.h5", "r") as f:
        for name, (dtype, shape) in SHAPES.items():
            d = f[name]
            assert d.shape == shape and d.attrs["dtype"].decode() == dtype, name
            assert np.array_equal(values(d), expected(name, shape, step)), name
            assert d.is_virtual == (0 not in shape), name
            for source in d.virtual_sources() if d.is_virtual else []:
                assert "/" not in source.file_name and source.file_name.startswith("%s_%08d_rank_" % (RUN, step)), source.file_name
        assert sorted(k for k in f if k != "nsp") == ["model", "replica_0000", "replica_0001", "state"]


def check_tables(folder, step, ranks):
    with h5py.File(folder + "/manifest.h5", "r") as f:
        nsp = f["nsp"]
        a = nsp.attrs
        assert a["format"].decode() == "nsp checkpoint" and a["format_version"] == 2 and a["step"] == step and a["run"].decode() == RUN
        assert a["checksum"].decode() == "xxh64" and len(a["written"].decode()) == 20
        texts = {k: nsp["attributes"][k][()].decode() for k in nsp["attributes"]}
        assert texts["config"] == "[model]\nlayers = 1\n" and texts["empty"] == "" and texts["plan%2Fvalues 100%25"] == "a"
        assert texts["%2E"] == "dot" and texts["text"] == "\u00e4" and len(texts["long"]) == 200000
        names = [n.decode() for n in nsp["tensors/name"]]
        shapes = nsp["tensors/shape"][...].reshape(-1, 5)
        assert {n: tuple(s[s >= 0]) for n, s in zip(names, shapes)} == {n: s for n, (_, s) in SHAPES.items()}
        shards = dict(zip(nsp["shards/rank"][...], (n.decode() for n in nsp["shards/name"])))
        assert sorted(os.listdir(folder)) == sorted(list(shards.values()) + ["manifest.h5"]) and len(shards) == ranks
        p = {k: nsp["pieces"][k][...] for k in ("tensor", "offset", "count", "rank", "checksum")}
        for tensor, offset, count, rank in zip(p["tensor"], p["offset"], p["count"], p["rank"]):
            if count == 0:
                continue
            with h5py.File(os.path.join(folder, shards[rank]), "r") as shard:
                d = shard["%s/%d" % (names[tensor], offset)]
                assert d.shape == (count,) and d.attrs["offset"] == offset
                assert tuple(np.atleast_1d(d.attrs["global_shape"])) == SHAPES[names[tensor]][1]


def check_lost_shard(folder, step):
    """Lost elements, and only they, are NaN."""
    os.remove("%s/%s_%08d_rank_0001.h5" % (folder, RUN, step))
    with h5py.File(folder + "/manifest.h5", "r") as f:
        lost_somewhere = False
        for name, (dtype, shape) in SHAPES.items():
            got, want = values(f[name]).reshape(-1), expected(name, shape, step).reshape(-1)
            lost = got != want
            lost_somewhere = lost_somewhere or lost.any()
            fill = {"int64": -2**63, "int32": -2**31, "uint8": 255}.get(dtype)
            assert np.all(np.isnan(got[lost]) if fill is None else got[lost] == fill), name
        wte = values(f["/model/embedding.wte"]).reshape(-1)
        assert np.flatnonzero(np.isnan(wte)).tolist() == list(range(400 // 3 + 3, 800 // 3 + 3))
        assert lost_somewhere


def main():
    folder = tempfile.mkdtemp(prefix="nsp_read_manifest_")
    try:
        for step, ranks in ((200, 3), (201, 1), (202, 7)):
            subprocess.run([sys.argv[1], folder + "/run", str(step), str(ranks)], check=True)
            where = "%s/run/checkpoints/step_%08d" % (folder, step)
            check_whole(where, step)
            check_tables(where, step, ranks)
        os.rename(folder + "/run", folder + "/moved")
        where = folder + "/moved/checkpoints/step_00000200"
        os.chdir("/")
        check_whole(where, 200)
        check_lost_shard(where, 200)
    finally:
        shutil.rmtree(folder)
    print("good")


main()
