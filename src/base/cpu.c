/*
 * Features of x86-64 processors, asked with CPUID and XGETBV (Intel SDM volume 1, sections 14.3,
 * 14.7 and 15.2 to 15.4).
 *
 * Written out because the compiler's own query refers to its run-time library.
 */
#include "base/cpu.h"

#if defined(__x86_64__)

struct cpuid {
    uint32_t eax, ebx, ecx, edx;
};

enum {
    LEAF_BASIC = 1,
    LEAF_EXTENDED = 7,
    ECX_XGETBV = 1 << 27, /* leaf 1: the system manages extended registers */
    ECX_AVX = 1 << 28,
    ECX_F16C = 1 << 29,
    EBX_AVX2 = 1 << 5, /* leaf 7 */
    EBX_AVX512F = 1 << 16,
    EBX_AVX512DQ = 1 << 17,
    EBX_AVX512BW = 1 << 30,
    STATE_AVX = 1 << 1 | 1 << 2,                         /* XMM and YMM */
    STATE_AVX512 = STATE_AVX | 1 << 5 | 1 << 6 | 1 << 7, /* masks, ZMM */
};

static const uint32_t ebx_avx512vl = UINT32_C(1) << 31; /* too large for an enum */

static struct cpuid ask(uint32_t leaf)
{
    struct cpuid answer;
    __asm__ volatile("cpuid"
                     : "=a"(answer.eax), "=b"(answer.ebx), "=c"(answer.ecx), "=d"(answer.edx)
                     : "a"(leaf), "c"(0));
    return answer;
}

/* The register states that the system saves. */
static uint32_t saved_states(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has_all(uint32_t word, uint32_t bits)
{
    return (word & bits) == bits;
}

uint32_t gw_cpu_features(void)
{
    const uint32_t avx512 = EBX_AVX2 | EBX_AVX512F | EBX_AVX512DQ | EBX_AVX512BW | ebx_avx512vl;
    uint32_t features = 0;
    if (ask(0).eax < LEAF_EXTENDED ||
        !has_all(ask(LEAF_BASIC).ecx, ECX_XGETBV | ECX_AVX | ECX_F16C))
        return 0;
    uint32_t states = saved_states();
    uint32_t extended = ask(LEAF_EXTENDED).ebx;
    if (has_all(states, STATE_AVX) && has_all(extended, EBX_AVX2))
        features |= GW_CPU_AVX2;
    if (has_all(states, STATE_AVX512) && has_all(extended, avx512))
        features |= GW_CPU_AVX512;
    return features;
}

#else

uint32_t gw_cpu_features(void)
{
    return 0;
}

#endif
