//! file_write: `{"path", "content"}` -> writes the file -> `{"path", "bytes", "sha256"}`. Imports fs.
//!
//! `bytes` is what the host says the file has now, `sha256` is of the content that was asked for. Neither is evidence:
//! the gateway's verifier reads the file itself.
const std = @import("std");
const provider = @import("provider");

comptime {
    provider.exportRun(run);
}

fn run(input: []const u8) provider.Error![]const u8 {
    const request = try provider.json.parse(input);
    const path = try provider.json.needString(request, "path");
    const content = try provider.json.needString(request, "content");
    const bytes = try provider.fs.write(path, content, .utf8);
    var digest: [32]u8 = undefined;
    std.crypto.hash.sha2.Sha256.hash(content, &digest, .{});
    return provider.json.write(.{ .path = path, .bytes = bytes, .sha256 = @as([]const u8, &std.fmt.bytesToHex(digest, .lower)) });
}
