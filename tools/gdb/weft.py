# SPDX-License-Identifier: MIT OR Apache-2.0
"""Commands for gdb: parked activities and coroutines, and their calls.

    source weft.py                  (or gdb -x weft.py …)
    weft activities                 the activities of the selected thread's group: state, and current function
    weft activity N [COMMAND]       COMMAND as if activity N had resumed; without COMMAND: backtrace
    weft coroutine K [COMMAND]      COMMAND as if coroutine K, which is suspended, had resumed; K: an expression of type weft_coro_t *

COMMAND may be any command that only looks: "backtrace full", "frame apply all info locals", "up 2". It can use frames and variables,
but it must not let the program run.

Parked frames of an activity are in a heap block. For COMMAND they are copied to their place on the group's stack, and registers are set;
afterwards memory and registers are restored. A core file cannot be changed: gdb reads a changed copy of it meanwhile.
"""
import os
import re
import struct
import subprocess
import tempfile

import gdb

# The states of src/activity/activity.h. An activity in another state has ended.
STATES = {"WEFT__A_NEW": "is not activated", "WEFT__A_READY": "is ready", "WEFT__A_RUNNING": "runs", "WEFT__FOR_SEM": "waits for a semaphore",
          "WEFT__FOR_END": "waits for an end", "WEFT__FOR_TIME": "waits for a time", "WEFT__FOR_WAKER": "waits for a waker",
          "WEFT__FOR_MAIL": "waits for mail", "WEFT__FOR_CALL": "waits for a call"}
HAVE_NO_FRAMES = (None, "WEFT__A_NEW")
REGISTERS = ("rsp", "rip", "rbp", "rbx")
# The order of struct user_regs_struct, which core files hold.
SAVED = ("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs",
         "eflags", "rsp")


def word(address):
    return int.from_bytes(gdb.selected_inferior().read_memory(address, 8).tobytes(), "little")


def evaluate(text):
    try:
        return gdb.parse_and_eval(text)
    except gdb.error as error:
        raise gdb.GdbError(f"{text}: {error}") from None


class Live:
    """Changes the memory and the registers of the selected thread, and restores them."""

    def __init__(self, where, frames, registers):
        self.where, self.frames, self.registers = where, frames, registers

    def __enter__(self):
        self.selected = gdb.selected_frame().level()
        gdb.newest_frame().select()
        self.before = {name: int(gdb.parse_and_eval(f"(unsigned long)${name}")) for name in (*REGISTERS, "orig_rax")}
        self.there = gdb.selected_inferior().read_memory(self.where, len(self.frames)).tobytes() if self.frames else b""
        self.set(self.frames, self.registers)

    def set(self, memory, registers):
        if memory:
            gdb.selected_inferior().write_memory(self.where, memory)
        for name, value in registers.items():
            gdb.execute(f"set ${name} = {value}", to_string=True)

    def __exit__(self, *error):
        gdb.newest_frame().select()
        self.set(self.there, self.before)
        gdb.execute(f"frame {self.selected}", to_string=True)


class Core:
    """Makes gdb read a copy of the core file, in which memory and registers are changed."""

    def __init__(self, path, where, frames, registers):
        self.path, self.where, self.frames, self.registers = path, where, frames, registers

    def __enter__(self):
        self.thread = gdb.selected_thread().num
        file, self.copy = tempfile.mkstemp(prefix="weft-core.")
        os.close(file)
        try:
            subprocess.run(["cp", "--sparse=always", "--reflink=auto", self.path, self.copy], check=True)
            with open(self.copy, "r+b") as core:
                self.change(core, gdb.selected_thread().ptid[1])
        except BaseException:
            os.unlink(self.copy)
            raise
        self.read(self.copy)

    def change(self, core, thread):
        begin = core.read(64)
        at, size, count = *struct.unpack_from("<Q", begin, 32), *struct.unpack_from("<HH", begin, 54)
        left = len(self.frames)
        for i in range(count):
            core.seek(at + i * size)
            kind, _, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", core.read(size))
            if kind == 4:
                self.change_notes(core, offset, in_file, thread)
            elif kind == 1 and address <= self.where and self.where + len(self.frames) <= address + in_file:
                core.seek(offset + self.where - address)
                core.write(self.frames)
                left = 0
        if left:
            raise gdb.GdbError("the core file does not hold the group's stack: see core(5), coredump_filter")

    def change_notes(self, core, offset, bytes_, thread):
        core.seek(offset)
        notes, at = core.read(bytes_), 0
        while at + 12 <= len(notes):
            name, content, kind = struct.unpack_from("<III", notes, at)
            status = at + 12 + (name + 3) // 4 * 4
            # struct elf_prstatus: pr_pid is at 32, pr_reg at 112.
            if kind == 1 and struct.unpack_from("<i", notes, status + 32)[0] == thread:
                for register, value in self.registers.items():
                    core.seek(offset + status + 112 + 8 * SAVED.index(register))
                    core.write(struct.pack("<Q", value))
            at = status + (content + 3) // 4 * 4

    def read(self, path):
        gdb.execute(f"core-file {path}", to_string=True)
        gdb.execute(f"thread {self.thread}", to_string=True)

    def __exit__(self, *error):
        self.read(self.path)
        os.unlink(self.copy)


def core_file():
    """The core file that gdb reads in place of a process, or None."""
    said = re.search(r"^Local core dump file:\n\s*`(.*)', file type", gdb.execute("info target", to_string=True), re.M)
    return said and said[1]


def standing(where, frames, registers):
    core = core_file()
    return Core(core, where, frames, registers) if core else Live(where, frames, registers)


class Activity:
    def __init__(self, group, at):
        self.group, self.at = group, at
        self.state = next((name for name in STATES if int(evaluate(f"(int){name}")) == int(at["state"])), None)
        self.does = STATES.get(self.state, "has ended")

    def stands(self):
        """The address of its frames on the stack, the frames, and the registers with which it resumes."""
        frames, size = int(self.at["frames"]), int(self.at["size"]) * 16
        base = int(self.group["base"])
        if self.group["stackful"]:
            own = self.at["frames"].cast(gdb.lookup_type("struct weft__own").pointer())
            return coroutine_stands(own["k"])
        if size:
            low = sp = base - size
            held = memory(frames, size)
        else:
            deep = self.at["frames"].cast(gdb.lookup_type("struct weft__deep").pointer())
            sp, held = int(deep["sp"]), window(deep, base)
            low = base - len(held)
        # rbp and the return address are at sp: in a stack of its own now, in the window after the copy.
        rbp, rip = (word(sp), word(sp + 8)) if not low <= sp < base else struct.unpack_from("<QQ", held, sp - low)
        return low, held, {"rsp": sp + 16, "rip": rip, "rbp": rbp}

    def function(self):
        """The name of the waiting function of the program, not of the library's function that it called."""
        where, frames, registers = self.stands()
        if self.group["stackful"] and not core_file():
            with Live(where, frames, registers):
                frame = gdb.newest_frame()
                while frame and str(frame.name()).startswith("weft_"):
                    frame = frame.older()
                return frame.name() if frame else "?"
        block, name = gdb.block_for_pc(registers["rip"] - 1), hex(registers["rip"])
        while block:  # an inlined function's block is inside its caller's block
            name = block.function.print_name if block.function else name
            block = block.superblock
        return name


def memory(address, size):
    return gdb.selected_inferior().read_memory(address, size).tobytes() if size else b""


def window(deep, base):
    """The frames of a parked activity, segment by segment (src/activity/segments.c)."""
    part, stack, record = deep["part"], deep["stack"], int(deep["segment"])
    if not part["bytes"]:  # the copy of the window is in the oldest stack
        while stack["outer"]:
            stack = stack["outer"]
        part = stack["parked"].dereference()
    held = memory(int(part["copy"].address), int(part["bytes"]))
    while record:
        outer, older, full = struct.unpack("<QQQ", held[-32:-8])
        part = gdb.Value(outer).cast(part.type.pointer()).dereference()
        held = held[:-32] + struct.pack("<QQQQ", 0, older, full, int(part["returns"]))
        held += memory(int(part["copy"].address), int(part["bytes"]))
        record = older
    return held


def coroutine_stands(k):
    """Like stands() for a coroutine, whose frames are in place."""
    link = k.dereference()["link"]
    pc, name = int(link["pc"]), symbol(int(link["pc"]))
    if name in ("weft__land_saving", "weft__land_copying"):
        pc = int(k.dereference()["inner_pc"])
    if name in ("weft__in_running", "weft__in_finished", "weft__in_deleted") or not pc:
        raise gdb.GdbError("this coroutine is not suspended: " + (name or "weft__in_deleted").removeprefix("weft__in_"))
    if symbol(pc) in ("weft__entry", "weft__entry_saving"):
        raise gdb.GdbError("this coroutine has not been resumed yet")
    if name == "weft__land_copying":
        raise gdb.GdbError("this coroutine's frames were copied away by its policy: run the program with WEFT_STACK=overcommit")
    return 0, b"", {"rsp": int(link["sp"]), "rip": pc, "rbp": int(link["fp"]), "rbx": int(link["bx"])}


def symbol(address):
    """The name of the function that begins at this address."""
    name, _, offset = gdb.execute(f"info symbol {address:#x}", to_string=True).partition(" ")
    return name if not offset.startswith("+") else ""


def activities():
    """The activities of the selected thread's group, in a stable order."""
    group = evaluate("weft__activity_hot.group")
    if not group:
        raise gdb.GdbError("no group of activities runs on this thread: see 'info threads'")
    group = group.dereference()
    found = [group["table"][i] for i in range(int(group["count"]))]
    slab = group["slabs"]
    while slab:
        each_of = range(slab["activities"].type.range()[1] + 1)
        found += [each.address for each in (slab["activities"][i] for i in each_of) if each["state"]]
        slab = slab["next"]
    return [Activity(group, at) for at in found]


class Weft(gdb.Command):
    """Shows the parked frames of a program of Weft: weft activities, weft activity N [COMMAND], weft coroutine K [COMMAND]."""

    def __init__(self):
        super().__init__("weft", gdb.COMMAND_STACK, prefix=True)


class Activities(gdb.Command):
    """weft activities: what each activity of the selected thread's group does, and in which function it goes on."""

    def __init__(self):
        super().__init__("weft activities", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for i, each in enumerate(activities()):
            parked = each.state not in (*HAVE_NO_FRAMES, "WEFT__A_RUNNING") and each.at["frames"]
            print(f"{i:>4}  {int(each.at):#x}  {each.does}" + (f", in {each.function()}" if parked else ""))


class OneActivity(gdb.Command):
    """weft activity N [COMMAND]: COMMAND (backtrace) as if activity N of 'weft activities' stood where it goes on."""

    def __init__(self):
        super().__init__("weft activity", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        number, _, command = argument.strip().partition(" ")
        known = activities()
        if not number.isdigit() or int(number) >= len(known):
            raise gdb.GdbError(f"weft activity wants a number below {len(known)}: 'weft activities' lists them")
        each = known[int(number)]
        if each.state == "WEFT__A_RUNNING":
            gdb.execute(command or "backtrace")
        elif each.state in HAVE_NO_FRAMES:
            raise gdb.GdbError(f"activity {number} has no frames: it {each.does}")
        else:
            with standing(*each.stands()):
                gdb.execute(command or "backtrace")


class OneCoroutine(gdb.Command):
    """weft coroutine K [COMMAND]: COMMAND (backtrace) as if the suspended coroutine K were resumed."""

    def __init__(self):
        super().__init__("weft coroutine", gdb.COMMAND_STACK, gdb.COMPLETE_SYMBOL)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not words:
            raise gdb.GdbError("weft coroutine wants an expression of type weft_coro_t *")
        command = argument.strip()[len(words[0]):].strip()
        with standing(*coroutine_stands(evaluate(words[0]))):
            gdb.execute(command or "backtrace")


Weft()
Activities()
OneActivity()
OneCoroutine()
