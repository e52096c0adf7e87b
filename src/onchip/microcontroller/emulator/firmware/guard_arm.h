/* The guard around a program: flash can be read and executed, the linked RAM written too, all else is closed.
 *
 * Once for the protection unit of Armv7-M, whose regions are powers of two, once for that of Armv8-M, whose regions
 * begin and end anywhere. A core without a protection unit has no guard. */
#ifndef ONCHIP_GUARD_ARM_H
#define ONCHIP_GUARD_ARM_H

#include "host.h"

extern uint32_t _flash_base, _flash_end, _vectors_base, _vectors_end, _stack_bottom, _ram_end;

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define MPU_TYPE REGISTER(0xE000ED90)
#define MPU_CTRL REGISTER(0xE000ED94)
#define MPU_RNR REGISTER(0xE000ED98)
#define MPU_RBAR REGISTER(0xE000ED9C)
#define MPU_RASR REGISTER(0xE000EDA0)
#define MPU_RLAR REGISTER(0xE000EDA0)
#define MPU_MAIR0 REGISTER(0xE000EDC0)

#if defined(__ARM_ARCH) && __ARM_ARCH >= 8

enum { OPEN = 1 << 1, NEVER_EXECUTED = 1, READ_ONLY = 3 << 1, ENABLED = 1, NON_CACHEABLE = 0x44 };

/* The rights of the region [base, end), both multiples of 32. */
static void protect(uint32_t number, uint32_t base, uint32_t end, uint32_t rights) {
    MPU_RNR = number;
    MPU_RBAR = base | rights;
    MPU_RLAR = ((end - 1) & ~31u) | ENABLED;
}

__attribute__((noinline)) static void guard(uint32_t end) {
    uint32_t number = 0;
    MPU_MAIR0 = NON_CACHEABLE;
    protect(number++, (uint32_t)&_flash_base, (uint32_t)&_flash_end, READ_ONLY);
    if (&_vectors_base != &_flash_base) protect(number++, (uint32_t)&_vectors_base, (uint32_t)&_vectors_end, READ_ONLY);
    protect(number++, (uint32_t)&_stack_bottom, end, OPEN | NEVER_EXECUTED);
    MPU_CTRL = 1;
    __asm volatile("dsb\n isb" ::: "memory");
}

#else

/* Flash and RAM have this many bytes each, or fewer. The usual flash lies at 0. */
#ifdef MEMORY_LOG2
#define FLASH_BASE ((uint32_t)&_flash_base)
#else
#define MEMORY_LOG2 22
#define FLASH_BASE 0
#endif

enum { READ_ONLY = 5, OPEN = 3, CLOSED = 0, NORMAL_MEMORY = 1 << 17 };

/* Number of a protected region: `log2_bytes` large, at a multiple of that; `which` has a bit for each eighth that it
 * speaks of. A region of a higher number goes before one of a lower. */
static void protect(uint32_t number, uint32_t base, uint32_t log2_bytes, uint32_t rights, uint32_t which) {
    MPU_RBAR = base | 1u << 4 | number;
    MPU_RASR = rights << 24 | NORMAL_MEMORY | (~which & 0xFF) << 8 | (log2_bytes - 1) << 1 | 1u;
}

/* Opens flash, and RAM from its beginning to `end`, a multiple of 32; closes all the rest. Not inlined: what it
 * keeps on the stack would lie below main's. */
__attribute__((noinline)) static void guard(uint32_t end) {
    uint32_t number = 0;
    if (!(MPU_TYPE >> 8 & 0xFF)) return;
    protect(number++, FLASH_BASE, MEMORY_LOG2, READ_ONLY, 0xFF);
    for (uint32_t log2_bytes = MEMORY_LOG2; log2_bytes > 8; log2_bytes -= 3) {
        uint32_t base = end & ~((1u << log2_bytes) - 1), eighth = (end - base) >> (log2_bytes - 3);
        protect(number++, base, log2_bytes, OPEN, (1u << eighth) - 1); /* the eighth with `end` is cut finer */
    }
    uint32_t base = end & ~255u;
    protect(number++, base, 8, OPEN, (1u << ((end - base) >> 5)) - 1);
    protect(number, end, 5, CLOSED, 0xFF); /* closed already: tells QEMU that this page is not all alike */
    MPU_CTRL = 1;
    __asm volatile("dsb\n isb" ::: "memory");
}

#endif
#endif
