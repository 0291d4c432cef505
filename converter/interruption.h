// What ends the converter from outside: signals, a disk that fails under a mapped file, no more memory. Whatever it is,
// the half-written file does not stay.
#pragma once

namespace dragoman {

// Before anything else. Signals that are ignored, as under nohup, stay so.
void arrange_interruptions();

}  // namespace dragoman
