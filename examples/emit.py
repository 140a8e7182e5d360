"""A tiny emitter of MLIR text for the example kernels.

Kernels are written as Python functions whose helpers emit operations. Every operation gets the
Python call stack at which it was emitted as its location: innermost frame first, out to the
kernel function, the frames of this file left out. So the locations are honest by construction,
and the examples look as a DSL's front end would make them.
"""

import os
import sys


class Value:
    """An SSA value: its name and its type, both as MLIR text."""

    def __init__(self, name, type):
        self.name = name
        self.type = type


class Emitter:
    """Collects the text of one gpu.module."""

    def __init__(self, name):
        self.name = name
        self.globals = {}
        self.functions = []
        self.body = []
        self.indent = 2
        self.count = 0
        self.locations = {}
        self.root = None

    # Locations

    def alias(self, text):
        return self.locations.setdefault(text, f"#loc{len(self.locations)}")

    def position(self, frame):
        """The place that a frame is at: the start of the expression that it evaluates."""
        positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        line, column = positions[0] or frame.f_lineno, (positions[2] or 0) + 1
        file = os.path.basename(frame.f_code.co_filename)
        place = self.alias(f'loc("{file}":{line}:{column})')
        return self.alias(f'loc("{frame.f_code.co_qualname}"({place}))')

    def location(self):
        """The call stack, out to the kernel function."""
        frame = sys._getframe(1)
        frames = []
        while frame is not None:
            if frame.f_code.co_filename != __file__:
                frames.append(self.position(frame))
            if frame.f_code is self.root:
                break
            frame = frame.f_back
        location = frames[-1]
        for inner in reversed(frames[:-1]):
            location = self.alias(f"loc(callsite({inner} at {location}))")
        return location

    # Operations

    def line(self, text):
        self.body.append("  " * self.indent + text)

    def fresh(self, type):
        self.count += 1
        return Value(f"%{self.count}", type)

    def op(self, name, *operands, result=None, attributes=""):
        """Emits an operation in generic form; returns its result, if it has one."""
        value = self.fresh(result) if result else None
        names = ", ".join(operand.name for operand in operands)
        types = ", ".join(operand.type for operand in operands)
        properties = f" <{{{attributes}}}>" if attributes else ""
        left = f"{value.name} = " if value else ""
        right = result or "()"
        self.line(f'{left}"{name}"({names}){properties} : ({types}) -> {right} loc({self.location()})')
        return value

    def constant(self, number, type="i32"):
        return self.op("arith.constant", result=type, attributes=f"value = {number} : {type}")

    def splat(self, number, type):
        return self.op("arith.constant", result=type, attributes=f"value = dense<{number}> : {type}")

    # What every kernel needs; like all of this file, no frames of a chain

    def add(self, a, b):
        return self.op("arith.addi", a, b, result="i32")

    def mul(self, a, b):
        return self.op("arith.muli", a, b, result="i32")

    def split(self, value, by):
        """The quotient and the remainder."""
        by = self.constant(by)
        return (self.op("arith.divui", value, by, result="i32"),
                self.op("arith.remui", value, by, result="i32"))

    def resource(self, pointer, flags):
        """A buffer resource over all that is behind a pointer."""
        stride, size = self.constant(0, "i16"), self.constant(0x7FFFFFFF, "i64")
        return self.op("rocdl.make.buffer.rsrc", pointer, stride, size, self.constant(flags),
                       result="!llvm.ptr<8>")

    def address(self, base, offset):
        """The address so many bytes behind another."""
        return self.op("llvm.getelementptr", base, offset, result=base.type,
                       attributes="elem_type = i8, rawConstantIndices = array<i32: -2147483648>")

    def load(self, address, type, alignment):
        return self.op("llvm.load", address, result=type,
                       attributes=f"alignment = {alignment} : i64, ordering = 0 : i64")

    def asm(self, text):
        """Inline assembly without operands."""
        self.op("llvm.inline_asm",
                attributes=f'asm_string = "{text}", constraints = "", has_side_effects')

    def loop(self, low, high, step, initial, body):
        """An scf.for; `body` gets the index and the carried values and returns their next ones."""
        index = self.fresh("i32")
        inner = [self.fresh(value.type) for value in initial]
        results = [self.fresh(value.type) for value in initial]
        carried = ", ".join(f"{i.name} = {o.name}" for i, o in zip(inner, initial))
        types = ", ".join(value.type for value in initial)
        location = self.location()
        names = ", ".join(value.name for value in results)
        self.line(
            f"{names} = scf.for {index.name} = {low.name} to {high.name} step {step.name} "
            f"iter_args({carried}) -> ({types}) : i32 {{"
        )
        self.indent += 1
        following = body(index, inner)
        names = ", ".join(value.name for value in following)
        self.line(f"scf.yield {names} : {types} loc({location})")
        self.indent -= 1
        self.line(f"}} loc({location})")
        return results

    def shared(self, name, bytes):
        """An LDS array of a number of bytes; returns its address where it is called."""
        text = (
            f"llvm.mlir.global internal @{name}() {{addr_space = 3 : i32, alignment = 16 : i64}} "
            f": !llvm.array<{bytes} x i8> loc({self.location()})"
        )
        self.globals.setdefault(name, text)
        return self.op("llvm.mlir.addressof", result="!llvm.ptr<3>", attributes=f"global_name = @{name}")

    # Functions

    def body_of(self, function, arguments):
        """Runs `function` with arguments of these types: its argument list, the text of what it
        emits, what it returns, and its own location."""
        outer, self.root = self.root, function.__code__
        line = function.__code__.co_firstlineno
        file = os.path.basename(function.__code__.co_filename)
        location = self.alias(f'loc("{file}":{line}:1)')
        values = [Value(f"%arg{at}", type) for at, type in enumerate(arguments)]
        start = len(self.body)
        returned = function(self, *values)
        text = self.body[start:]
        del self.body[start:]
        self.root = outer
        return values, text, returned, location

    def kernel(self, function, arguments, threads):
        """Emits `function` as a kernel with these argument types and threads in a workgroup."""
        values, text, _, location = self.body_of(function, arguments)
        header = ", ".join(f"{value.name}: {value.type} loc({location})" for value in values)
        self.body.append(
            f"    gpu.func @{function.__name__}({header}) kernel attributes "
            f"{{known_block_size = array<i32: {threads}, 1, 1>}} {{"
        )
        self.body += text
        self.body.append(f'      "gpu.return"() : () -> () loc({location})')
        self.body.append(f"    }} loc({location})")

    def function(self, function, arguments, result=None, uniform=(), noinline=False):
        """Emits `function` as an internal function of its own; what comes back calls it.

        The arguments in `uniform` are the same for a whole wave and go in scalar registers.
        """
        values, text, returned, location = self.body_of(function, arguments)
        header = ", ".join(
            f"{value.name}: {value.type} {'{llvm.inreg} ' if at in uniform else ''}loc({location})"
            for at, value in enumerate(values)
        )
        name, results = function.__name__, f" -> {result}" if result else ""
        attributes = " attributes {no_inline}" if noinline else ""
        back = f"{returned.name}) : ({returned.type}" if result else ") : ("
        self.functions += [
            f"    llvm.func internal @{name}({header}){results}{attributes} {{",
            *text,
            f'      "llvm.return"({back}) -> () loc({location})',
            f"    }} loc({location})",
        ]
        sizes = f"operandSegmentSizes = array<i32: {len(arguments)}, 0>, op_bundle_sizes = array<i32>"
        return lambda *operands: self.op("llvm.call", *operands, result=result,
                                         attributes=f"callee = @{name}, {sizes}")

    def text(self, head=""):
        lines = [head] if head else []
        lines += ["module attributes {gpu.container_module} {", f"  gpu.module @{self.name} {{"]
        lines += ["    " + text for text in self.globals.values()]
        lines += self.functions + self.body
        lines += ["  }", "}"]
        lines += [f"{alias} = {text}" for text, alias in self.locations.items()]
        return "\n".join(lines) + "\n"
