//! The canonical ABI of the few shapes that the WIT has, the export `run`, and the memory that one call uses.
//! An instance serves one call, so nothing is ever freed.
const std = @import("std");

pub const allocator = std.heap.wasm_allocator;

/// `string`: where and how many bytes, UTF-8.
pub const Str = extern struct {
    ptr: [*]const u8,
    len: usize,

    pub fn of(s: []const u8) Str {
        return .{ .ptr = place(s), .len = s.len };
    }
    pub fn get(s: Str) []const u8 {
        return s.ptr[0..s.len];
    }
};

/// Where a slice lies. The host refuses even an empty list outside of memory, and Zig's empty slices may point anywhere.
pub fn place(slice: anytype) [*]const std.meta.Elem(@TypeOf(slice)) {
    return if (slice.len == 0) @ptrCast(&nothing) else slice.ptr;
}

const nothing: u64 = 0;

const OptStr = extern struct { some: u8, val: Str };

pub const ErrorKind = enum(u8) { invalid_input, denied, not_found, conflict, too_large, timeout, unavailable, internal };
pub const Encoding = enum(u8) { utf8, base64 };

/// `provider-error` as it lies in memory.
pub const RawError = extern struct { kind: ErrorKind, message: Str, details: OptStr, retryable: u8 };

/// `result<T, provider-error>` as it lies in memory.
pub fn Result(comptime T: type) type {
    return extern struct {
        is_err: u8,
        u: extern union { ok: T, err: RawError },
    };
}

comptime {
    // What the canonical ABI prescribes; wit-bindgen's C headers agree.
    std.debug.assert(@sizeOf(RawError) == 28 and @offsetOf(RawError, "retryable") == 24);
    std.debug.assert(@sizeOf(Result(Str)) == 32 and @offsetOf(Result(Str), "u") == 4);
    std.debug.assert(@sizeOf(Result(u64)) == 40 and @offsetOf(Result(u64), "u") == 8);
}

/// What a provider fails with. `message` is for people, `details` is JSON text for machines.
pub const ProviderError = struct {
    kind: ErrorKind = .internal,
    message: []const u8 = "internal error",
    details: ?[]const u8 = null,
    retryable: bool = false,
};

pub const Error = error{ Failed, OutOfMemory };

var failure: ProviderError = .{};

/// `return provider.fail(.{ .kind = .invalid_input, .message = "…" });`
pub fn fail(e: ProviderError) error{Failed} {
    failure = e;
    return error.Failed;
}

/// What the latest `error.Failed` was about, for a provider that goes on after a host function has failed.
pub fn lastFailure() ProviderError {
    return failure;
}

/// Passes on what a host function failed with.
pub fn failRaw(e: RawError) error{Failed} {
    return fail(.{
        .kind = e.kind,
        .message = e.message.get(),
        .details = if (e.details.some != 0) e.details.val.get() else null,
        .retryable = e.retryable != 0,
    });
}

/// The host puts the strings and lists that it hands over where this says.
export fn cabi_realloc(old: ?[*]u8, old_len: usize, alignment: usize, new_len: usize) [*]const u8 {
    if (new_len == 0) return @ptrCast(&nothing);
    const fresh = allocator.rawAlloc(new_len, .fromByteUnits(alignment), 0) orelse @trap();
    if (old) |o| {
        const kept = @min(old_len, new_len);
        @memcpy(fresh[0..kept], o[0..kept]);
    }
    return fresh;
}

var answer: Result(Str) = undefined;

/// Makes `run` the component's export. In a provider's root file: `comptime { provider.exportRun(run); }`
pub fn exportRun(comptime run: fn (input: []const u8) Error![]const u8) void {
    const S = struct {
        fn entry(ptr: [*]const u8, len: usize) callconv(.c) *Result(Str) {
            if (run(ptr[0..len])) |output| {
                answer = .{ .is_err = 0, .u = .{ .ok = .of(output) } };
            } else |e| {
                if (e == error.OutOfMemory) failure = .{ .kind = .too_large, .message = "memory limit" };
                answer = .{ .is_err = 1, .u = .{ .err = .{
                    .kind = failure.kind,
                    .message = .of(failure.message),
                    .details = .{ .some = @intFromBool(failure.details != null), .val = .of(failure.details orelse "") },
                    .retryable = @intFromBool(failure.retryable),
                } } };
            }
            return &answer;
        }
    };
    @export(&S.entry, .{ .name = "run" });
}
