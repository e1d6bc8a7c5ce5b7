/* What the words of job control mean, and reasons as text; see job.h. */
#include "core/job.h"

#include "base/assert.h"

/* Where the numbers are in a spot. */
enum {
    SPOT_ABOVE1_SHIFT = 0,
    SPOT_ABOVE0_SHIFT = 8,
    SPOT_FAN_IN_SHIFT = 16,
    SPOT_LEVEL_SHIFT = 24,
};

/* Where the numbers are in the last of the terms' words. */
enum {
    POSITION_BITS = 5,
    LEVEL_BITS = 2,
    WINDOW_BITS = 5,
    INDEXING_BITS = 2,
    TERMS_ABOVE1_SHIFT = 0,
    TERMS_ABOVE0_SHIFT = TERMS_ABOVE1_SHIFT + POSITION_BITS,
    TERMS_POSITION_SHIFT = TERMS_ABOVE0_SHIFT + POSITION_BITS,
    TERMS_LEVEL_SHIFT = TERMS_POSITION_SHIFT + POSITION_BITS,
    TERMS_WINDOW_SHIFT = TERMS_LEVEL_SHIFT + LEVEL_BITS,
    TERMS_INDEXING_SHIFT = TERMS_WINDOW_SHIFT + WINDOW_BITS,
};

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
    };
    return (uint32_t)reason < GW_JOB_REASONS ? texts[reason] : "unknown reason";
}

uint32_t gw_job_spot_pack(const struct gw_job_spot *spot)
{
    return (uint32_t)spot->level << SPOT_LEVEL_SHIFT | (uint32_t)spot->fan_in << SPOT_FAN_IN_SHIFT |
           (uint32_t)spot->above[0] << SPOT_ABOVE0_SHIFT |
           (uint32_t)spot->above[1] << SPOT_ABOVE1_SHIFT;
}

struct gw_job_spot gw_job_spot_unpack(uint32_t word)
{
    return (struct gw_job_spot){
        .level = (uint8_t)(word >> SPOT_LEVEL_SHIFT),
        .fan_in = (uint8_t)(word >> SPOT_FAN_IN_SHIFT),
        .above = {(uint8_t)(word >> SPOT_ABOVE0_SHIFT), (uint8_t)(word >> SPOT_ABOVE1_SHIFT)},
    };
}

static uint32_t put_bits(uint32_t value, uint32_t bits, uint32_t shift)
{
    GW_ASSERT(value >> bits == 0);
    return value << shift;
}

static uint8_t get_bits(uint32_t word, uint32_t bits, uint32_t shift)
{
    return (uint8_t)(word >> shift & ((1u << bits) - 1));
}

void gw_job_terms_pack(const struct gw_job_terms *terms, uint32_t word[3])
{
    word[0] = (uint32_t)terms->rank << 16 | terms->world;
    word[1] = (uint32_t)terms->values << 16 | terms->aggregators;
    word[2] = put_bits(terms->above[1], POSITION_BITS, TERMS_ABOVE1_SHIFT) |
              put_bits(terms->above[0], POSITION_BITS, TERMS_ABOVE0_SHIFT) |
              put_bits(terms->position, POSITION_BITS, TERMS_POSITION_SHIFT) |
              put_bits(terms->level, LEVEL_BITS, TERMS_LEVEL_SHIFT) |
              put_bits(terms->window_log2, WINDOW_BITS, TERMS_WINDOW_SHIFT) |
              put_bits(terms->indexing, INDEXING_BITS, TERMS_INDEXING_SHIFT);
}

struct gw_job_terms gw_job_terms_unpack(const uint32_t word[3])
{
    return (struct gw_job_terms){
        .rank = (uint16_t)(word[0] >> 16),
        .world = (uint16_t)word[0],
        .values = (uint16_t)(word[1] >> 16),
        .aggregators = (uint16_t)word[1],
        .level = get_bits(word[2], LEVEL_BITS, TERMS_LEVEL_SHIFT),
        .position = get_bits(word[2], POSITION_BITS, TERMS_POSITION_SHIFT),
        .above = {get_bits(word[2], POSITION_BITS, TERMS_ABOVE0_SHIFT),
                  get_bits(word[2], POSITION_BITS, TERMS_ABOVE1_SHIFT)},
        .window_log2 = get_bits(word[2], WINDOW_BITS, TERMS_WINDOW_SHIFT),
        .indexing = get_bits(word[2], INDEXING_BITS, TERMS_INDEXING_SHIFT),
    };
}
