"""Reads a checkpoint as any HDF5 program would: every data set of manifest.h5, whole.

usage: read_checkpoint.py MANIFEST OUTPUT

Prints a line per data set: name, number of elements, number of NaN elements. Writes their elements to OUTPUT as fp32, one data
set behind the other in the order of the lines. Ends with 77 if h5py or numpy is not installed.
"""
import sys

try:
    import h5py
    import numpy
except ImportError as missing:
    print(missing)
    sys.exit(77)


def main(manifest, output):
    names = []
    with h5py.File(manifest, "r") as file, open(output, "wb") as out:
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        for name in names:
            if name.split("/")[0] not in ("model", "state") and not name.startswith("replica_"):
                continue
            values = file[name][...].astype("<f4")
            print("/" + name, values.size, int(numpy.isnan(values).sum()))
            out.write(values.tobytes())


main(sys.argv[1], sys.argv[2])
