"""Safetensors files: eight bytes of length, a header in JSON, the bytes of the tensors."""

import json
import os
from pathlib import Path

import torch

ALIGNMENT = 64
WORDS = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
DTYPES = {word: dtype for dtype, word in WORDS.items()}


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """The elements in order, little-endian."""
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data) if tensor.numel() else b""


def write_tensors(path: Path, tensors: dict, metadata: dict) -> None:
    """Writes a file beside `path` and renames it. The first tensor is aligned to 64 bytes; metadata: text by name."""
    header: dict = {"__metadata__": metadata}
    offset = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": WORDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor in tensors.values():
                file.write(raw_bytes(tensor))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_tensors(path: Path) -> tuple:
    """(tensors by name, metadata) of a file that `write_tensors` wrote."""
    content = Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    body = bytearray(content[8 + length :])
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(body[begin:end], dtype=DTYPES[entry["dtype"]]) if end > begin else torch.empty(0, dtype=DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata
