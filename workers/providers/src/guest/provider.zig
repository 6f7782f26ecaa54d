//! Guest library for providers of `gateway:provider@1.0.0`: one import for everything a provider needs.
//!
//!     const provider = @import("provider");
//!     comptime { provider.exportRun(run); }
//!     fn run(input: []const u8) provider.Error![]const u8 { … }
//!
//! Only the host interfaces that a provider really calls become imports of the component.
const abi = @import("abi.zig");

pub const json = @import("json.zig");
pub const http = @import("http.zig");
pub const fs = @import("fs.zig");
pub const log = @import("log.zig");
pub const clock = @import("clock.zig");

pub const allocator = abi.allocator;
pub const exportRun = abi.exportRun;
pub const Encoding = abi.Encoding;
pub const ErrorKind = abi.ErrorKind;
pub const ProviderError = abi.ProviderError;
pub const Error = abi.Error;
pub const fail = abi.fail;
pub const lastFailure = abi.lastFailure;
