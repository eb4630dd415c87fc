"""OME-Zarr as others write it, read through zarrd: by ome-zarr and ngff-zarr in versions 0.4 and 0.5, and in the layout of
bioformats2raw, once in a directory and once on a web server without listings:

    ZARRD=target/debug/zarrd images.py

Elements are compared with those of zarr-python, and descriptions with the attributes. Needs ome-zarr; ngff-zarr is left out
where it is not installed. Prints what differs, and a line of counts; the exit code is 1 if something differs.
"""

import functools
import http.server
import json
import os
import pathlib
import struct
import tempfile
import threading
import warnings

import numpy as np
import zarr
from numcodecs import Blosc

from served import Server, check, finish

warnings.simplefilter("ignore")
RNG = np.random.default_rng(7)


class Files(http.server.SimpleHTTPRequestHandler):
    def list_directory(self, path):
        self.send_error(404)

    def log_message(self, *_):
        pass


class FileServer(http.server.ThreadingHTTPServer):
    # zarrd closes connections whose answers it does not need.
    def handle_error(self, *_):
        pass


def channels(count):
    colors = ["0000FF", "00FF00", "FF0000", "FFFF00"]
    return [
        {"active": index < 3, "coefficient": 1, "color": colors[index % 4], "family": "linear", "inverted": False, "label": f"Channel {index}",
         "window": {"start": 0.0, "end": 4095.0, "min": 0.0, "max": 65535.0}}
        for index in range(count)
    ]


def bioformats2raw(root, version, series, plate=None):
    """Writes what bioformats2raw writes: version 0.4 as jzarr, with big-endian elements and nested keys, 0.5 as zarr-java."""
    is_v2 = version == "0.4"
    wrap = (lambda members: members) if is_v2 else (lambda members: {"ome": {"version": version, **members}})
    at = lambda path, members: zarr.create_group(root if not path else f"{root}/{path}", zarr_format=2 if is_v2 else 3, attributes=members, overwrite=False)
    layout = {"bioformats2raw.layout": 3}
    rows = [{"name": "A"}, {"name": "B"}]
    if plate:
        wells = sorted({path.rsplit("/", 1)[0] for path in series})
        layout["plate"] = {"name": "Plate", "field_count": 1, "rows": rows, "columns": [{"name": "1"}, {"name": "2"}], "acquisitions": [{"id": 0}],
                           "wells": [{"path": path, "rowIndex": "AB".index(path[0]), "columnIndex": int(path[2]) - 1} for path in wells], "version": version}
    at("", wrap(layout))
    at("OME", wrap({"series": series}) if series else ({} if is_v2 else wrap({})))
    xml = "".join(f'<Image ID="Image:{index}"><Pixels/></Image>' for index in range(max(len(series), 2)))
    pathlib.Path(root, "OME", "METADATA.ome.xml").write_text(f'<?xml version="1.0"?><OME>{xml}</OME>')
    if plate:
        for row in {path[0] for path in wells}:
            at(row, {})
        for path in wells:
            images = [{"acquisition": 0, "path": name.rsplit("/", 1)[1]} for name in series if name.startswith(path + "/")]
            at(path, wrap({"well": {"images": images}}))
    for index, name in enumerate(series or ["0", "1"]):
        axes = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}]
        axes += [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
        datasets = [{"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 2.0, 0.5 * 2**level, 0.5 * 2**level]}]} for level in range(2)]
        image = {"name": name, "axes": axes, "datasets": datasets, "metadata": {"method": "loci.common.image.SimpleImageScaler", "version": "Bio-Formats 8.3.0"}}
        if is_v2:
            image["version"] = version
        omero = {"channels": channels(4), "rdefs": {"defaultT": 0, "defaultZ": 1, "model": "color"}}
        at(name, wrap({"multiscales": [image], "omero": omero}))
        for level in range(2):
            data = RNG.integers(0, 4096, (2, 4, 3, 40 >> level, 56 >> level), dtype="u2")
            format = {"zarr_format": 2, "dtype": ">u2", "chunk_key_encoding": {"name": "v2", "separator": "/"}, "compressors": Blosc("lz4", 5, 1)}
            if not is_v2:
                format = {"zarr_format": 3, "dtype": "u2", "dimension_names": list("tczyx"), "shards": (1, 1, 1, 32, 64)}
            array = zarr.create_array(f"{root}/{name}/{level}", shape=data.shape, chunks=(1, 1, 1, 16, 32), fill_value=0, **format)
            array[...] = data


def by_ome_zarr(root, version):
    from ome_zarr.format import FormatV04, FormatV05
    from ome_zarr.writer import write_image, write_labels

    format = FormatV04() if version == "0.4" else FormatV05()
    group = zarr.open_group(root, mode="w", zarr_format=2 if version == "0.4" else 3)
    data = RNG.integers(0, 4096, (2, 3, 64, 48), dtype="u2")
    write_image(data, group, fmt=format, axes="czyx", metadata={"omero": {"channels": channels(2)}})
    write_labels((data[0] > 2000).astype("u1"), group, name="cells", fmt=format, axes="zyx")


def by_ngff_zarr(root, version, dims):
    import ngff_zarr

    extents = dict(zip("tczyx", (2, 3, 5, 70, 90)))
    data = RNG.integers(0, 4096, [extents[axis] for axis in dims], dtype="u2")
    scale = {axis: {"y": 0.25, "x": 0.25, "z": 1.5, "t": 2.0}[axis] for axis in dims if axis != "c"}
    translation = {axis: 10.0 for axis in dims if axis != "c"}
    units = {axis: "second" if axis == "t" else "micrometer" for axis in dims if axis != "c"}
    image = ngff_zarr.to_ngff_image(data, dims=list(dims), scale=scale, translation=translation, name="ngff", axes_units=units)
    multiscales = ngff_zarr.to_multiscales(image, scale_factors=[2, 4], chunks=32)
    ngff_zarr.to_ngff_zarr(root, multiscales, version=version, consolidate_metadata=len(dims) > 2)


def images_below(root):
    """The groups that are images, by their paths below a directory, with what their attributes say."""
    for path in sorted(root.rglob("*")):
        if path.name not in (".zattrs", "zarr.json"):
            continue
        document = json.loads(path.read_text())
        attributes = document if path.name == ".zattrs" else document.get("attributes", {})
        ome = attributes.get("ome", attributes)
        if isinstance(ome, dict) and "multiscales" in ome:
            yield str(path.parent.relative_to(root)), ome


def members(document, path=""):
    """The paths of all nodes, with their shapes."""
    found = {path: document.get("shape")}
    for name, member in (document.get("members") or {}).items():
        found |= members(member, f"{path}/{name}")
    return found


def header(png):
    """The width, the height and the colour type of a PNG file: 2 is RGB."""
    width, height, _, colour = struct.unpack(">IIBB", png[16:26])
    return width, height, colour


def check_coordinates(server, kind, path, level, names, dataset, wanted):
    """Selects ranges and nearest elements in the units of the axes, at the image and at the level itself."""
    steps = {step["type"]: step[step["type"]] for step in dataset["coordinateTransformations"]}
    for axis, name in enumerate(names):
        if name == "c":
            continue
        coordinate = steps.get("translation", [0.0] * len(names))[axis] + np.arange(wanted.shape[axis]) * steps["scale"][axis]
        low, high = coordinate[len(coordinate) // 3], coordinate[-1] * 0.9
        for label, chosen in ((f"{low}..{high}", (coordinate >= low) & (coordinate <= high)), (f"{high}~", len(coordinate) - 1 - int(np.abs(coordinate - high)[::-1].argmin()))):
            elements = np.compress(chosen, wanted, axis) if isinstance(chosen, np.ndarray) else np.take(wanted, chosen, axis)
            elements = elements.astype(elements.dtype.newbyteorder("<")).tobytes()
            for place in (f"{path}?level={level}&", f"{path}/{dataset['path']}?"):
                check(kind, f"{place} {name}={label}", server.get(f"/array/{place}format=raw&sel.{name}={label}"), elements)


def check_image(server, kind, path, ome):
    (image, *_), data = ome["multiscales"], server.json(f"/node/{path}?include=source&depth=0")
    if isinstance(data, str):
        return check(kind, f"{path} node", data, "described")
    found = data.get("image", {})
    check(kind, f"{path} axes", [(axis["name"], axis["type"], axis["unit"]) for axis in found.get("axes", [])],
          [(axis["name"], axis.get("type"), axis.get("unit")) for axis in image["axes"]])
    check(kind, f"{path} levels", [level["path"] for level in found.get("levels", [])], [dataset["path"] for dataset in image["datasets"]])
    for level, dataset in enumerate(image["datasets"]):
        wanted = zarr.open_array(f"{DATA}/{path}/{dataset['path']}", mode="r")[...]
        bytes = wanted.astype(wanted.dtype.newbyteorder("<")).tobytes()
        check(kind, f"{path} level {level}", server.get(f"/array/{path}?level={level}&format=raw"), bytes)
        names = [axis["name"] for axis in image["axes"]]
        before = "&".join(f"isel.{name}={wanted.shape[at] // 2}" for at, name in enumerate(names) if name not in "cyx")
        plane = wanted[tuple(slice(None) if name in "cyx" else extent // 2 for name, extent in zip(names, wanted.shape))]
        check(kind, f"{path} plane {level}", server.get(f"/array/{path}?level={level}&format=raw&{before}"), plane.astype(plane.dtype.newbyteorder("<")).tobytes())
        if "c" in names and names.index("c") < len(names) - 2:
            png = server.get(f"/array/{path}?level={level}&format=png&channels=active&{before}")
            shown = header(png) if not isinstance(png, str) else png
            check(kind, f"{path} colours {level}", shown, (wanted.shape[-1], wanted.shape[-2], 2))
        if level == 1:
            check_coordinates(server, kind, path, level, names, dataset, wanted)
    labels = [channel.get("label") for channel in ome.get("omero", {}).get("channels", [])]
    check(kind, f"{path} channels", [channel["label"] for channel in found.get("channels", [])], labels)


with tempfile.TemporaryDirectory() as data:
    DATA = data
    for version in ("0.4", "0.5"):
        bioformats2raw(f"{data}/named-{version}", version, ["0", "1"])
        bioformats2raw(f"{data}/numbered-{version}", version, [])
        bioformats2raw(f"{data}/plate-{version}", version, ["A/1/0", "B/2/0", "B/2/1"], plate=True)
        by_ome_zarr(f"{data}/ome_zarr-{version}", version)
        try:
            for dims in ("tczyx", "zyx", "cyx", "yx"):
                by_ngff_zarr(f"{data}/ngff_zarr-{dims}-{version}", version, dims)
        except ImportError:
            print("ngff-zarr is not installed")
    web = FileServer(("127.0.0.1", 0), functools.partial(Files, directory=data))
    threading.Thread(target=web.serve_forever, daemon=True).start()
    directory, remote = Server(f"dir:{data}"), Server(f"http://127.0.0.1:{web.server_address[1]}?versions=last-modified")
    try:
        for store in sorted(os.listdir(data)):
            listed = members(directory.json(f"/node/{store}"))
            unlisted = remote.json(f"/node/{store}")
            check("members", store, unlisted if isinstance(unlisted, str) else members(unlisted), listed)
            pages = [server.json(f"/node/{store}?include=source&limit=1000") for server in (directory, remote)]
            check("pages", store, *(page if isinstance(page, str) else sorted(page["node"]["members"]) for page in pages))
        for path, ome in images_below(pathlib.Path(data)):
            check_image(directory, "directory", path, ome)
            check_image(remote, "web server", path, ome)
    finally:
        directory.stop()
        remote.stop()
        web.shutdown()
finish()
