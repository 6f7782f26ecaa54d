//! spin: burns what it is asked to, so that limits can be seen at work. Imports clock.
//!
//! `{"fuel", "memory_mb", "seconds"}`, each 0 when absent -> the same three. First it grows its memory by `memory_mb`
//! MiB and touches every page, then it burns about `fuel` units of fuel in a tight loop, then it reads the clock until
//! `seconds` have passed since the start; there the host's clock takes nearly all of the time and little fuel is used.
const std = @import("std");
const provider = @import("provider");
const json = provider.json;

comptime {
    provider.exportRun(run);
}

const page = 64 * 1024;
/// What one turn of `burn` costs in wasmtime, where an operator is one unit; a test holds it to that.
const fuel_per_turn = 8;

fn run(input: []const u8) provider.Error![]const u8 {
    const begin = provider.clock.nanoseconds();
    const request = try json.parse(input);
    if (!request.isObject()) return json.refuse("", "the request is not an object");
    const zero: json.Value = .{ .text = "0" };
    const fuel = try request.get("fuel") orelse zero;
    const memory = try request.get("memory_mb") orelse zero;
    const seconds = try request.get("seconds") orelse zero;
    const turns = (fuel.integer() orelse return json.refuse("fuel", "not a whole number")) / fuel_per_turn;
    const megabytes = memory.integer() orelse return json.refuse("memory_mb", "not a whole number");
    const nanoseconds = seconds.decimal(9) orelse return json.refuse("seconds", "not a number of seconds");
    try grow(megabytes);
    burn(turns);
    while (provider.clock.nanoseconds() -| begin < nanoseconds) {}
    return json.write(.{ .fuel = fuel, .memory_mb = memory, .seconds = seconds });
}

fn grow(megabytes: u64) provider.Error!void {
    if (megabytes == 0) return;
    const pages = std.math.mul(u64, megabytes, 1024 * 1024 / page) catch return refuse();
    if (pages > 65536) return refuse();
    const before = @wasmMemoryGrow(0, @intCast(pages));
    if (before < 0) return refuse();
    const first = @as(usize, @intCast(before)) * page;
    var offset: usize = 0;
    while (offset < pages * page) : (offset += 4096) {
        @as(*volatile u8, @ptrFromInt(first + offset)).* = 1;
    }
}

fn refuse() provider.Error {
    return provider.fail(.{ .kind = .too_large, .message = "memory limit" });
}

fn burn(turns: u64) void {
    var left = turns;
    while (left != 0) {
        left -= 1;
        // Without this the loop would have no effect and be removed.
        asm volatile (""
            : [left] "+r" (left),
        );
    }
}
