//! The host's `clock`: monotonic nanoseconds.
extern "gateway:provider/clock@1.0.0" fn now() u64;

pub fn nanoseconds() u64 {
    return now();
}
