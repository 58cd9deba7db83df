"""The text of an answer: parts with a title, and behind a bar each line of what was asked, said or written."""

import os
import pathlib


def list_files(folder):
    """[(name in the folder, path)], sorted; what lies behind links is not of the folder."""
    found = [pathlib.Path(place, name) for place, _, names in os.walk(folder) for name in names]
    return sorted((str(file.relative_to(folder)), file) for file in found)


def draw_content(content):
    """Text as it is, other bytes in hexadecimal, 32 a line."""
    try:
        text = content.decode()
        if "\0" not in text:
            return text
    except UnicodeDecodeError:
        pass
    return "".join(content[at : at + 32].hex() + "\n" for at in range(0, len(content), 32))


def draw_part(title, text):
    """`title`, and each line of the text behind a bar."""
    if text and not text.endswith("\n"):
        title, text = title + " (no end of line)", text + "\n"
    return title + "\n" + "".join(f"|{line}\n" for line in text.split("\n")[:-1])


def draw_file(verb, name, file):
    return draw_part(f"{verb}: file {name}", draw_content(file.read_bytes()))


def read_parts(text):
    """[(title, text)] of what draw_part made."""
    parts = []
    for line in text.split("\n")[:-1]:
        if line.startswith("|"):
            parts[-1][1].append(line[1:] + "\n")
        else:
            parts.append((line, []))
    return [(title, "".join(lines)) for title, lines in parts]
