/* Start of a program on an Arm core: vectors, the guard, and what a fault says. In instructions that all have. */
#include "guard_arm.h"
#include "host.h"

extern uint32_t _stack_top;

#define CONFIGURATION REGISTER(0xE000ED14)
#define FAULT_STATUS REGISTER(0xE000ED28)
#define FAULT_ADDRESS REGISTER(0xE000ED34)
#define BUS_FAULT_ADDRESS REGISTER(0xE000ED38)
#define COPROCESSORS REGISTER(0xE000ED88)

enum { ADDRESS_KNOWN = 1 << 7, BUS_ADDRESS_KNOWN = 1 << 15, NO_ROOM_FOR_FRAME = 1 << 4, MOST_OVERFLOW = 1 << 16 };
enum { FAULT = 70, REPORT_STACK = 64, UNALIGNED_IS_A_FAULT = 1 << 3 };

void host_guard(void) {
    COPROCESSORS |= 0xFu << 20; /* the units for floating point and vectors, where there are any */
#if !defined(__ARM_FEATURE_UNALIGNED)
    CONFIGURATION |= UNALIGNED_IS_A_FAULT; /* as on the core that the code is for, which may not be this one */
#endif
    guard((uint32_t)&_ram_end);
}

__attribute__((naked, used)) void host_reset(void) {
    __asm volatile(
        ".syntax unified\n"
        "ldr r0, =_stack_bottom\n"
        "ldr r1, =_stack_top\n"
        "ldr r2, =0xA5A5A5A5\n"
        "1: cmp r0, r1\n"
        "bcs 2f\n"
        "str r2, [r0]\n"
        "adds r0, r0, #4\n"
        "b 1b\n"
        "2: ldr r0, =host_started\n"
        "bx r0\n"
        ".ltorg\n");
}

/* The stack overflowed if what was touched lies just below it, or if nothing was but to keep this `frame`. Else the
 * frame tells who it was, if there was room for it. */
__attribute__((noreturn, used)) void host_failed(const uint32_t *frame) {
    uint32_t status = FAULT_STATUS, bottom = (uint32_t)&_stack_bottom;
    uint32_t address = status & ADDRESS_KNOWN ? FAULT_ADDRESS : status & BUS_ADDRESS_KNOWN ? BUS_FAULT_ADDRESS : 0;
    host_report("fault", status);
    host_report("address", address);
    if (address ? bottom - address <= MOST_OVERFLOW : (status & NO_ROOM_FOR_FRAME) != 0) host_report("overflow", 1);
    else if ((uint32_t)frame >= bottom && !(status & NO_ROOM_FOR_FRAME)) host_report("at", frame[6]);
    host_exit(FAULT);
}

/* A fault may come from a stack that is full: then what reports it begins with a fresh one. */
__attribute__((naked, used)) static void fault(void) {
    __asm volatile(
        ".syntax unified\n"
        "mrs r0, msp\n"
        "ldr r1, =_stack_bottom + %c0\n"
        "cmp r0, r1\n"
        "bcs 1f\n"
        "ldr r1, =_stack_top\n"
        "msr msp, r1\n"
        "1: ldr r1, =host_failed\n"
        "bx r1\n"
        ".ltorg\n" ::"i"(REPORT_STACK));
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &_stack_top, (const void *)host_reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault,
};
