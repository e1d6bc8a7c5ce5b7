/* What the words of job control mean, and reasons as text; see job.h. */
#include "core/job.h"

#include "base/assert.h"

/* Where the numbers are in a spot. */
enum {
    SPOT_ABOVE1_SHIFT = 0,
    SPOT_ABOVE0_SHIFT = 8,
    SPOT_FAN_IN_SHIFT = 16,
    SPOT_LEVEL_SHIFT = 24,
    SPOT_LEVEL_MASK = 127,
    SPOT_PARTIALS_SHIFT = 31,
};

/* Where the numbers are in the first of the terms' words, and in the last. */
enum {
    POSITION_BITS = 5,
    LEVEL_BITS = 2,
    RANK_BITS = 10,
    INDEXING_BITS = 2,
    HASHING_BITS = 1,
    WINDOW_BITS = 16,
    TERMS_ABOVE1_SHIFT = 0,
    TERMS_ABOVE0_SHIFT = TERMS_ABOVE1_SHIFT + POSITION_BITS,
    TERMS_LEVEL_SHIFT = TERMS_ABOVE0_SHIFT + POSITION_BITS,
    TERMS_WORLD_SHIFT = TERMS_LEVEL_SHIFT + LEVEL_BITS,
    TERMS_RANK_SHIFT = TERMS_WORLD_SHIFT + RANK_BITS,
    TERMS_POSITION_SHIFT = 0,
    TERMS_INDEXING_SHIFT = TERMS_POSITION_SHIFT + POSITION_BITS,
    TERMS_HASHING_SHIFT = TERMS_INDEXING_SHIFT + INDEXING_BITS,
    TERMS_WINDOW_SHIFT = TERMS_HASHING_SHIFT + HASHING_BITS,
};

_Static_assert(GW_WORLD_MAX == 1 << RANK_BITS, "ranks, and the number of workers less 1");

const char *gw_job_reason_text(enum gw_job_reason reason)
{
    static const char *const texts[GW_JOB_REASONS] = {
        [GW_JOB_OK] = "all is well",
        [GW_JOB_FULL] = "all ranks of the job are taken",
        [GW_JOB_RANK] = "the rank is taken, or not below the number of workers",
        [GW_JOB_TREE] = "too many workers or switches hang on one switch",
        [GW_JOB_PATH] = "the ways of the workers to the server do not make a tree",
        [GW_JOB_ROOM] = "a switch has no room for the job",
        [GW_JOB_TAKEN] = "a switch knows another job of the same number",
        [GW_JOB_LOST] = "a worker fell silent",
        [GW_JOB_LIMIT] = "the job needs more than the worker was made for",
        [GW_JOB_SILENT] = "the server fell silent",
        [GW_JOB_STALLED] = "no result came for too long",
        [GW_JOB_OVERFLOW] = "a sum does not fit its type",
        [GW_JOB_MISMATCH] = "workers reduce tensors that differ",
        [GW_JOB_NOTICE] = "workers announce bursts differently, or with more than 75 packets",
    };
    return (uint32_t)reason < GW_JOB_REASONS ? texts[reason] : "unknown reason";
}

uint32_t gw_job_spot_pack(const struct gw_job_spot *spot)
{
    return (uint32_t)spot->partials << SPOT_PARTIALS_SHIFT |
           (uint32_t)spot->level << SPOT_LEVEL_SHIFT | (uint32_t)spot->fan_in << SPOT_FAN_IN_SHIFT |
           (uint32_t)spot->above[0] << SPOT_ABOVE0_SHIFT |
           (uint32_t)spot->above[1] << SPOT_ABOVE1_SHIFT;
}

struct gw_job_spot gw_job_spot_unpack(uint32_t word)
{
    return (struct gw_job_spot){
        .level = (uint8_t)(word >> SPOT_LEVEL_SHIFT & SPOT_LEVEL_MASK),
        .partials = (uint8_t)(word >> SPOT_PARTIALS_SHIFT),
        .fan_in = (uint8_t)(word >> SPOT_FAN_IN_SHIFT),
        .above = {(uint8_t)(word >> SPOT_ABOVE0_SHIFT), (uint8_t)(word >> SPOT_ABOVE1_SHIFT)},
    };
}

static uint32_t put_bits(uint32_t value, uint32_t bits, uint32_t shift)
{
    GW_ASSERT(value >> bits == 0);
    return value << shift;
}

static uint16_t get_bits(uint32_t word, uint32_t bits, uint32_t shift)
{
    return (uint16_t)(word >> shift & ((1u << bits) - 1));
}

void gw_job_terms_pack(const struct gw_job_terms *terms, uint32_t word[3])
{
    word[0] = put_bits(terms->above[1], POSITION_BITS, TERMS_ABOVE1_SHIFT) |
              put_bits(terms->above[0], POSITION_BITS, TERMS_ABOVE0_SHIFT) |
              put_bits(terms->level, LEVEL_BITS, TERMS_LEVEL_SHIFT) |
              put_bits(terms->world - 1u, RANK_BITS, TERMS_WORLD_SHIFT) |
              put_bits(terms->rank, RANK_BITS, TERMS_RANK_SHIFT);
    word[1] = (uint32_t)terms->values << 16 | terms->aggregators;
    word[2] = put_bits(terms->position, POSITION_BITS, TERMS_POSITION_SHIFT) |
              put_bits(terms->indexing, INDEXING_BITS, TERMS_INDEXING_SHIFT) |
              put_bits(terms->hashing, HASHING_BITS, TERMS_HASHING_SHIFT) |
              put_bits(terms->window, WINDOW_BITS, TERMS_WINDOW_SHIFT);
}

struct gw_job_terms gw_job_terms_unpack(const uint32_t word[3])
{
    return (struct gw_job_terms){
        .rank = get_bits(word[0], RANK_BITS, TERMS_RANK_SHIFT),
        .world = (uint16_t)(get_bits(word[0], RANK_BITS, TERMS_WORLD_SHIFT) + 1),
        .values = (uint16_t)(word[1] >> 16),
        .aggregators = (uint16_t)word[1],
        .level = (uint8_t)get_bits(word[0], LEVEL_BITS, TERMS_LEVEL_SHIFT),
        .position = (uint8_t)get_bits(word[2], POSITION_BITS, TERMS_POSITION_SHIFT),
        .above = {(uint8_t)get_bits(word[0], POSITION_BITS, TERMS_ABOVE0_SHIFT),
                  (uint8_t)get_bits(word[0], POSITION_BITS, TERMS_ABOVE1_SHIFT)},
        .window = get_bits(word[2], WINDOW_BITS, TERMS_WINDOW_SHIFT),
        .indexing = (uint8_t)get_bits(word[2], INDEXING_BITS, TERMS_INDEXING_SHIFT),
        .hashing = (uint8_t)get_bits(word[2], HASHING_BITS, TERMS_HASHING_SHIFT),
    };
}
