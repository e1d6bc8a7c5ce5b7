/* Loads the corpus of a target and mutates it; see replay.h. Round r of seed s is the same input
 * everywhere. */
#include "fuzz/replay.h"

#include "support.h"

#include <dirent.h>
#include <stdio.h>

#include "base/prng.h"

enum {
    FILES_MAX = 64,
    INPUT_MAX = 4096,
    MUTATIONS_MAX = 6, /* per mutant */
};

struct input {
    size_t size;
    uint8_t bytes[INPUT_MAX];
};

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Reads the corpus in the order of names; returns how many files there are. */
static uint32_t corpus_load(const char *corpus, struct input *inputs)
{
    char path[512];
    struct dirent **entries;
    snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s", GW_SOURCE_DIR, corpus);
    int count = scandir(path, &entries, is_visible, by_name);
    assert_in_range(count, 1, FILES_MAX);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s/%s", GW_SOURCE_DIR, corpus,
                 entries[i]->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        inputs[i].size = fread(inputs[i].bytes, 1, INPUT_MAX, file);
        fclose(file);
        free(entries[i]);
    }
    free(entries);
    return (uint32_t)count;
}

static void insert(struct input *input, size_t at, size_t count, const uint8_t *from)
{
    if (input->size + count > INPUT_MAX)
        return;
    memmove(input->bytes + at + count, input->bytes + at, input->size - at);
    memcpy(input->bytes + at, from, count);
    input->size += count;
}

static void mutate(struct input *input, const struct input *other, struct gw_prng *prng)
{
    static const uint8_t special[] = {0, 1, 2, 16, 127, 128, 254, 255};
    uint32_t size = (uint32_t)input->size;
    uint32_t at = gw_prng_below(prng, size);
    uint32_t count = 1 + gw_prng_below(prng, 16);
    switch (gw_prng_below(prng, 6)) {
    case 0: /* flip a bit */
        if (size)
            input->bytes[at] ^= (uint8_t)(1u << gw_prng_below(prng, 8));
        break;
    case 1: /* a number where codecs break */
        if (size)
            input->bytes[at] = special[gw_prng_below(prng, sizeof(special))];
        break;
    case 2: /* any number */
        if (size)
            input->bytes[at] = (uint8_t)gw_prng_next(prng);
        break;
    case 3: /* cut the end off */
        input->size = at;
        break;
    case 4: /* cut something out */
        if (at + count <= size) {
            memmove(input->bytes + at, input->bytes + at + count, size - at - count);
            input->size -= count;
        }
        break;
    default: { /* put in a piece of another input */
        uint32_t from = gw_prng_below(prng, (uint32_t)other->size);
        uint32_t left = (uint32_t)other->size - from;
        count *= 4; /* whole headers move as well */
        insert(input, at, count < left ? count : left, other->bytes + from);
    }
    }
}

static void target__survives_mutants(void **state)
{
    const struct gw_test_target *target = &gw_test_target;
    (void)state;
    struct input *inputs = calloc(FILES_MAX + 1, sizeof(*inputs));
    assert_non_null(inputs);
    uint32_t count = corpus_load(target->corpus, inputs);
    struct input *mutant = &inputs[FILES_MAX];
    print_message("seed %llu, %u inputs, %u mutants\n", (unsigned long long)target->seed, count,
                  target->rounds);
    for (uint32_t i = 0; i < count; i++)
        LLVMFuzzerTestOneInput(inputs[i].bytes, inputs[i].size);
    for (uint32_t round = 0; round < target->rounds; round++) {
        struct gw_prng prng = gw_prng_derive(target->seed, round);
        const struct input *parent = &inputs[gw_prng_below(&prng, count)];
        mutant->size = parent->size;
        memcpy(mutant->bytes, parent->bytes, parent->size);
        for (uint32_t i = 1 + gw_prng_below(&prng, MUTATIONS_MAX); i > 0; i--)
            mutate(mutant, &inputs[gw_prng_below(&prng, count)], &prng);
        LLVMFuzzerTestOneInput(mutant->bytes, mutant->size);
    }
    free(inputs);
    target->check_reached();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(target__survives_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
