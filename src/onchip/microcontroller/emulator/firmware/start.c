/* Start of a program on the emulated core, the part that all cores share: memory, main, the report of its stack.
 *
 * The stack lies lowest in RAM, so that it runs into nothing of the program's when it overflows. */
#include "host.h"

extern uint32_t _stack_bottom, _stack_top, _data_start, _data_end, _data_image, _bss_start, _bss_end;

int main(void);

#define UNUSED 0xA5A5A5A5u

uint32_t host_stack_used(void) {
    const uint32_t *word = &_stack_bottom;
    while (word < &_stack_top && *word == UNUSED) word++;
    return (uint32_t)((const char *)&_stack_top - (const char *)word);
}

__attribute__((noreturn, used)) void host_started(void) {
    const uint32_t *from = &_data_image;
    for (uint32_t *to = &_data_start; to < &_data_end;) *to++ = *from++;
    for (uint32_t *to = &_bss_start; to < &_bss_end;) *to++ = 0;
    host_guard();
    int code = main();
    host_report("stack", host_stack_used());
    host_exit(code);
}
