//! The host's `fs`: files below the root that the manifest names. Paths are relative, data are strings.
const abi = @import("abi.zig");

pub const Kind = enum(u8) { file, directory };
pub const Entry = struct { name: []const u8, kind: Kind, size: u64 };

const RawEntry = extern struct {
    name: abi.Str,
    kind: Kind,
    size: u64,

    fn get(e: RawEntry) Entry {
        return .{ .name = e.name.get(), .kind = e.kind, .size = e.size };
    }
};
const Entries = extern struct { ptr: [*]const RawEntry, len: usize };
const Nothing = extern struct { unused: [0]u8 = .{} };

const raw = struct {
    extern "gateway:provider/fs@1.0.0" fn read(p: [*]const u8, pl: usize, e: i32, r: *abi.Result(abi.Str)) void;
    extern "gateway:provider/fs@1.0.0" fn write(p: [*]const u8, pl: usize, d: [*]const u8, dl: usize, e: i32, r: *abi.Result(u64)) void;
    extern "gateway:provider/fs@1.0.0" fn append(p: [*]const u8, pl: usize, d: [*]const u8, dl: usize, e: i32, r: *abi.Result(u64)) void;
    extern "gateway:provider/fs@1.0.0" fn list(p: [*]const u8, pl: usize, r: *abi.Result(Entries)) void;
    extern "gateway:provider/fs@1.0.0" fn stat(p: [*]const u8, pl: usize, r: *abi.Result(RawEntry)) void;
    extern "gateway:provider/fs@1.0.0" fn delete(p: [*]const u8, pl: usize, r: *abi.Result(Nothing)) void;
};

pub fn read(path: []const u8, encoding: abi.Encoding) abi.Error![]const u8 {
    var r: abi.Result(abi.Str) = undefined;
    raw.read(abi.place(path), path.len, @backingInt(encoding), &r);
    return if (r.is_err != 0) abi.failRaw(r.u.err) else r.u.ok.get();
}

/// Replaces the file; answers its size in bytes.
pub fn write(path: []const u8, data: []const u8, encoding: abi.Encoding) abi.Error!u64 {
    var r: abi.Result(u64) = undefined;
    raw.write(abi.place(path), path.len, abi.place(data), data.len, @backingInt(encoding), &r);
    return if (r.is_err != 0) abi.failRaw(r.u.err) else r.u.ok;
}

/// Adds to the file; answers its size in bytes.
pub fn append(path: []const u8, data: []const u8, encoding: abi.Encoding) abi.Error!u64 {
    var r: abi.Result(u64) = undefined;
    raw.append(abi.place(path), path.len, abi.place(data), data.len, @backingInt(encoding), &r);
    return if (r.is_err != 0) abi.failRaw(r.u.err) else r.u.ok;
}

pub fn list(path: []const u8) abi.Error![]const Entry {
    var r: abi.Result(Entries) = undefined;
    raw.list(abi.place(path), path.len, &r);
    if (r.is_err != 0) return abi.failRaw(r.u.err);
    const entries = try abi.allocator.alloc(Entry, r.u.ok.len);
    for (entries, r.u.ok.ptr[0..r.u.ok.len]) |*entry, e| entry.* = e.get();
    return entries;
}

pub fn stat(path: []const u8) abi.Error!Entry {
    var r: abi.Result(RawEntry) = undefined;
    raw.stat(abi.place(path), path.len, &r);
    return if (r.is_err != 0) abi.failRaw(r.u.err) else r.u.ok.get();
}

pub fn delete(path: []const u8) abi.Error!void {
    var r: abi.Result(Nothing) = undefined;
    raw.delete(abi.place(path), path.len, &r);
    if (r.is_err != 0) return abi.failRaw(r.u.err);
}
