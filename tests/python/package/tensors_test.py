#!/usr/bin/env python3
"""Safetensors files in pure Python: what is written is read, and what is no such file is refused in one sentence."""

import json
import struct
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import frazil
from support import main


def make_file(header, content=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content


class Tensors(unittest.TestCase):
    def setUp(self):
        scratch = TemporaryDirectory(prefix="tensors-")
        self.addCleanup(scratch.cleanup)
        self.path = Path(scratch.name) / "some.safetensors"

    def test_are_read_as_they_were_written(self):
        half = struct.pack("<3e", 0.5, -2.0, 65504.0)
        brain = struct.pack("<2H", 0x3F80, 0xC000)
        given = {
            **{"integers": [[1, -(2**62)], [3, 4]], "floats": [1.5, -0.25], "one": 7, "none": [], "thin": [[], []]},
            **{"half": frazil.Tensor("F16", (3,), half), "brain": frazil.Tensor("BF16", (2,), brain), "truth": frazil.Tensor("BOOL", (2,), b"\1\0")},
        }
        frazil.write_tensors(self.path, given)
        found = frazil.read_tensors(self.path)
        self.assertEqual(set(found), set(given))
        expected = {**given, "half": [0.5, -2.0, 65504.0], "brain": [1.0, -2.0], "truth": [True, False]}
        self.assertEqual({name: tensor.tolist() for name, tensor in found.items()}, expected)
        self.assertEqual((found["integers"].kind, found["floats"].kind, found["thin"].shape), ("I64", "F32", (2, 0)))
        self.assertEqual(list(self.path.parent.iterdir()), [self.path])

    def test_lie_at_places_that_are_multiples_of_their_elements(self):
        frazil.write_tensors(self.path, {"a": frazil.Tensor("U8", (3,), b"abc"), "b": [1, 2], "c": [0.5]}, {"some": "text"})
        content = self.path.read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length])
        self.assertEqual(header.pop("__metadata__"), {"some": "text"})
        sizes = {"U8": 1, "F32": 4, "I64": 8}
        for told in header.values():
            self.assertEqual((8 + length + told["data_offsets"][0]) % sizes[told["dtype"]], 0)

    def test_that_are_no_tensors_are_refused(self):
        for value, told in (({"a"}, "type set"), ([[1], [1, 2]], "unequal lengths"), ("text", "type str"), (None, "type NoneType")):
            with self.assertRaisesRegex(TypeError, told):
                frazil.write_tensors(self.path, {"a": value})
        with self.assertRaisesRegex(OverflowError, "out of range"):
            frazil.write_tensors(self.path, {"a": 2**63})
        self.assertEqual(list(self.path.parent.iterdir()), [])


class Damage(unittest.TestCase):
    setUp = Tensors.setUp

    def refuse(self, content, told):
        self.path.write_bytes(content)
        with self.assertRaises(frazil.FrazilError) as caught:
            frazil.read_tensors(self.path)
        self.assertEqual(caught.exception.code, 2)
        self.assertRegex(str(caught.exception), f"^{self.path}: found [^\n]*{told}[^\n]*, expected [^\n]+$")

    def test_of_the_header_is_told(self):
        self.refuse(b"", "0 bytes")
        self.refuse(b"\1\0\0", "3 bytes")
        self.refuse(struct.pack("<Q", 2**63) + b"{}", "10 bytes")
        self.refuse(make_file(b"[]"), "no object")
        self.refuse(make_file(b"{"), "no JSON")
        self.refuse(make_file(b'{"a":1,"a":2}'), "stands twice")
        self.refuse(make_file({"__metadata__": {"a": 1}}), "metadata")

    def test_of_a_tensor_is_told_with_its_name(self):
        good = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
        for change, told in (
            ({"dtype": "F8"}, "'F8' of tensor a"),
            ({"shape": [-2]}, "shape"),
            ({"shape": [3]}, "8 bytes for tensor a"),
            ({"shape": "2"}, "shape '2' of tensor a"),
            ({"data_offsets": [0]}, "data_offsets of tensor a"),
            ({"data_offsets": [4, 12]}, "bytes 4 to 12"),
            ({"data_offsets": None}, "data_offsets of tensor a"),
        ):
            self.refuse(make_file({"a": {**good, **change}}, b"\0" * 8), told)
        self.refuse(make_file({"a": 1}), "data_offsets of tensor a")
        self.refuse(make_file({"a": good}, b"\0" * 7), "bytes 0 to 8")
        self.refuse(make_file({"a": good}, b"\0" * 9), "9 bytes of tensors")
        self.refuse(make_file({"a": good, "b": good}, b"\0" * 16), "bytes 0 to 8 for tensor b")

    def test_of_the_place_is_told(self):
        with self.assertRaisesRegex(frazil.FrazilError, "nowhere: found no such file or directory, expected a readable file"):
            frazil.read_tensors("nowhere")

    def test_by_any_cut_is_told(self):
        frazil.write_tensors(self.path, {"a": [1, 2], "b": [0.5]})
        whole = self.path.read_bytes()
        for length in range(len(whole)):
            self.path.write_bytes(whole[:length])
            with self.assertRaises(frazil.FrazilError):
                frazil.read_tensors(self.path)


if __name__ == "__main__":
    main()
