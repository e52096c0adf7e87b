/* What a program on the emulated core asks of the machine that emulates it (semihosting). */
#ifndef ONCHIP_HOST_H
#define ONCHIP_HOST_H

#include <stdint.h>

/* Files lie in the folder of the run. Each returns a handle, or -1. */
int host_open_to_read(const char *name);
int host_open_to_write(const char *name);

/* Moves exactly `size` bytes from `position` on; 0, or -1 where there are fewer. */
int host_read(int file, void *bytes, uint32_t position, uint32_t size);
int host_write(int file, const void *bytes, uint32_t size);

/* A line "NAME NUMBER" of the run's report. */
void host_report(const char *name, uint32_t number);

/* Bytes of the stack that have been written since the start. */
uint32_t host_stack_used(void);

/* Closes all memory but the program's own, where the core can; called before main. */
void host_guard(void);

__attribute__((noreturn)) void host_exit(int code);

#endif
