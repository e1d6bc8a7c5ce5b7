/*
 * Fuzz target: the header of an .npy file.
 *
 * Property: nothing is read outside the bytes; a refusal is one line of printable text; what is
 * accepted has a shape of that many elements, and data that begin within the bytes.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "base/assert.h"
#include "cli/npy.h"

static uint32_t accepted, refused;

static bool is_one_line(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at < ' ' || *at > '~')
            return false;
    return *text;
}

static void check_array(const struct gw_npy *array)
{
    unsigned __int128 count = 1;
    GW_ASSERT(array->dims <= GW_NPY_DIMS_MAX && !array->data);
    for (uint32_t i = 0; i < array->dims; i++)
        count *= array->shape[i];
    GW_ASSERT(count == array->count && count <= PTRDIFF_MAX / gw_npy_element(array->type));
    GW_ASSERT(gw_npy_is_alike(array, array, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[GW_NPY_ERROR_MAX];
    struct gw_npy array;
    size_t begin;
    /* A copy of exactly this size, so that the sanitizer sees a read beyond it. */
    uint8_t *bytes = malloc(size + (size == 0));
    GW_ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    if (gw_npy_parse(bytes, size, &array, &begin, error) == 0) {
        GW_ASSERT(begin <= size);
        check_array(&array);
        accepted++;
    } else {
        GW_ASSERT(is_one_line(error));
        refused++;
    }
    free(bytes);
    return 0;
}

enum {
    ROUNDS = 300000,
};

static void check_reached(void)
{
    assert_in_range(accepted, ROUNDS / 100, ROUNDS);
    assert_in_range(refused, ROUNDS / 10, ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "npy",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
