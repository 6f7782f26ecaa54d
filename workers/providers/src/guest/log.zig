//! The host's `log`: lines that the gateway writes into its own log, marked as the provider's words.
const abi = @import("abi.zig");

pub const Level = enum(u8) { debug, info, warn, @"error" };

extern "gateway:provider/log@1.0.0" fn message(level: i32, text: [*]const u8, len: usize) void;

pub fn write(level: Level, text: []const u8) void {
    message(@backingInt(level), abi.place(text), text.len);
}
