// What a process leaves behind, put away: temporary files and folders by their names, and child processes.
// Everything here may run in a signal handler: it allocates nothing and takes no lock.
#pragma once

namespace onchip::guard {

// Remembers a path that is to be gone when the process is. False when there is no room for another.
bool keep(const char* path);
// Forgets it: it has been renamed or removed.
void drop(const char* path);
// Removes all that are remembered, folders with what they hold.
void remove_kept();
// Kills every process that descends from this one.
void kill_descendants();

}  // namespace onchip::guard
