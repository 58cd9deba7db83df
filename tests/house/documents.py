"""Fenced blocks in documents, and the marks on those that hold commands.

The info string of a fence says what the block holds. Commands are marked `sh run` (run by the thorough tests) or
`sh shown` (only shown: they take a GPU, other machines, a long time, or install something). `text output` behind a block
of commands is what these print, `text output measured` the same with other numbers. The words of NO_COMMANDS are for
what is none; any other mark is refused, so that commands cannot stand under a word of their own. A command named in a
table or inside a sentence carries no mark.
"""

import re
from dataclasses import dataclass, field

from source_tree import Complaint

MOST_LINES_OF_README = 150
COMMANDS_THAT_RUN = "sh run"
COMMANDS = (COMMANDS_THAT_RUN, "sh shown")
SHELLS = ("sh", "bash", "shell", "zsh")
OUTPUT = ("text output", "text output measured")
NO_COMMANDS = ("cmake", "cpp", "json", "python", "text")
# Blocks that are files of the tree, by document and mark.
SHOWN_FILES = {"docs/install.md": {"cmake": "tests/install/consumer/CMakeLists.txt", "cpp": "tests/install/consumer/consumer_main.cpp"}}
FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([^`]*?)\s*$")
LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")


@dataclass
class Block:
    """A fenced block; `line` is that of its opening fence."""

    line: int
    info: str
    lines: list = field(default_factory=list)
    is_closed: bool = False


@dataclass
class Document:
    """The blocks of a document in order, and the lines on which indented code begins."""

    blocks: list = field(default_factory=list)
    indented: list = field(default_factory=list)

    def pairs(self):
        """Each block with the next one, the last with None."""
        return list(zip(self.blocks, [*self.blocks[1:], None]))


def read_document(path):
    """Reads a Markdown file."""
    document = Document()
    lines = path.read_text(encoding="utf-8").splitlines()
    prose, number = [], 1
    while number <= len(lines):
        opening = FENCE.match(lines[number - 1])
        if opening:
            block, number = read_block(lines, number, opening)
            document.blocks.append(block)
            prose.append((number, ""))
        else:
            prose.append((number, lines[number - 1]))
        number += 1
    document.indented = indented_code(prose)
    return document


def read_block(lines, number, opening):
    """The block that opens on line `number`, and the line on which it ends."""
    indent, fence, info = opening.groups()
    block = Block(number, info)
    for end in range(number + 1, len(lines) + 1):
        line = lines[end - 1]
        closing = FENCE.match(line)
        if closing and not closing.group(3) and closing.group(2).startswith(fence):
            block.is_closed = True
            return block, end
        block.lines.append(line.removeprefix(indent))
    return block, len(lines)


def indented_code(prose):
    """The lines on which code begins that is marked by four spaces alone: behind an empty line, outside lists."""
    found, before, is_list = [], "", False
    for number, line in prose:
        is_deep = line.startswith(("    ", "\t"))
        if LIST_ITEM.match(line) and (is_list or not is_deep):
            is_list = True
        elif line and not line[0].isspace() and not before.strip():
            is_list = False
        if is_deep and line.strip() and not is_list and not before.strip():
            found.append(number)
        before = line
    return found


def check_documents(tree):
    """README.md is short, and every command of the documents carries a mark."""
    readme = tree.root / "README.md"
    if not readme.exists():
        yield Complaint("README.md", 1, "is missing")
        return
    count = len(readme.read_text(encoding="utf-8").splitlines())
    if count > MOST_LINES_OF_README:
        yield Complaint("README.md", count, f"has {count} lines, expected at most {MOST_LINES_OF_README}")
    for path in documents_of(tree.root):
        name = path.relative_to(tree.root).as_posix()
        document = read_document(path)
        for line in document.indented:
            yield Complaint(name, line, "begins code without a fence, so without a mark")
        for line, fault in faults_of_blocks(document):
            yield Complaint(name, line, fault)
        for line, fault in faults_of_shown_files(tree.root, name, document):
            yield Complaint(name, line, fault)


def documents_of(root):
    """The documents whose commands are marked."""
    named = [root / "README.md", root / "CONTRIBUTING.md"]
    return [path for path in named if path.exists()] + sorted((root / "docs").glob("*.md"))


def faults_of_blocks(document):
    """What is wrong with the blocks of a document, with the lines."""
    before = ""
    for block in document.blocks:
        if not block.is_closed:
            yield block.line, "opens a block that is not closed"
        if not block.info:
            yield block.line, f"opens a block without a mark, expected {', '.join(COMMANDS)}, text or another word for what it holds"
        elif block.info.split()[0] in SHELLS and block.info not in COMMANDS:
            yield block.line, f"found mark `{block.info}`, expected one of {', '.join(COMMANDS)}"
        elif block.info.startswith(OUTPUT[0]):
            yield from faults_of_output(block, before)
        elif block.info not in (*COMMANDS, *NO_COMMANDS):
            yield block.line, f"found mark `{block.info}`, expected one of {', '.join((*COMMANDS, *OUTPUT, *NO_COMMANDS))}"
        before = block.info


def faults_of_shown_files(root, name, document):
    """A block that shows a file holds all of it, and each file that the document is to show is there."""
    shown = SHOWN_FILES.get(name, {})
    for block in document.blocks:
        if block.info in shown and block.lines != (root / shown[block.info]).read_text(encoding="utf-8").splitlines():
            yield block.line, f"differs from {shown[block.info]}, which it shows"
    for mark in shown.keys() - {block.info for block in document.blocks}:
        yield 1, f"does not show {shown[mark]}"


def faults_of_output(block, before):
    """An output block has one of two marks and stands behind commands that run."""
    if block.info not in OUTPUT:
        yield block.line, f"found mark `{block.info}`, expected one of {', '.join(OUTPUT)}"
    if before != COMMANDS_THAT_RUN:
        yield block.line, f"holds the output of no commands: the block before it is not marked {COMMANDS_THAT_RUN}"
