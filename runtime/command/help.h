// What --help says.
#pragma once

namespace dragoman::command {

// For a command's name, or the whole program's for anything else.
const char* help_text(const char* command);

}  // namespace dragoman::command
