/* What the processor is asked, compared with what the compiler's run-time library finds. */
#include "support.h"

#include "base/cpu.h"

static void cpu_features__are_those_that_the_compiler_finds(void **state)
{
    (void)state;
    uint32_t expected = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
        expected |= GW_CPU_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        expected |= GW_CPU_AVX512;
#endif
    assert_int_equal(gw_cpu_features(), expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_features__are_those_that_the_compiler_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
