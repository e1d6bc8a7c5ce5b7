/* What the words of job control mean, and reasons as text; see job.h. */
#include "core/job.h"

#include "base/assert.h"
#include "core/notice.h"

enum {
    POSITION_BITS = 5,
    LEVEL_BITS = 2,
    RANK_BITS = 10,
};

/* Where the numbers are in INSTALL's word of the spot. */
enum {
    FAN_IN_BITS = POSITION_BITS + 1,
    PARTIALS_BITS = 1,
    WORKERS_BITS = RANK_BITS + 1,
    SPOT_ABOVE1_SHIFT = 0,
    SPOT_ABOVE0_SHIFT = SPOT_ABOVE1_SHIFT + POSITION_BITS,
    SPOT_FAN_IN_SHIFT = SPOT_ABOVE0_SHIFT + POSITION_BITS,
    SPOT_LEVEL_SHIFT = SPOT_FAN_IN_SHIFT + FAN_IN_BITS,
    SPOT_PARTIALS_SHIFT = SPOT_LEVEL_SHIFT + LEVEL_BITS,
    SPOT_WORKERS_SHIFT = SPOT_PARTIALS_SHIFT + PARTIALS_BITS,
};

/* Where the numbers are in the first of the terms' words, and in the last. */
enum {
    INDEXING_BITS = 2,
    HASHING_BITS = 1,
    WINDOW_BITS = 16,
    NOTICE_BITS = 4,
    TERMS_ABOVE1_SHIFT = 0,
    TERMS_ABOVE0_SHIFT = TERMS_ABOVE1_SHIFT + POSITION_BITS,
    TERMS_LEVEL_SHIFT = TERMS_ABOVE0_SHIFT + POSITION_BITS,
    TERMS_WORLD_SHIFT = TERMS_LEVEL_SHIFT + LEVEL_BITS,
    TERMS_RANK_SHIFT = TERMS_WORLD_SHIFT + RANK_BITS,
    TERMS_POSITION_SHIFT = 0,
    TERMS_INDEXING_SHIFT = TERMS_POSITION_SHIFT + POSITION_BITS,
    TERMS_HASHING_SHIFT = TERMS_INDEXING_SHIFT + INDEXING_BITS,
    TERMS_WINDOW_SHIFT = TERMS_HASHING_SHIFT + HASHING_BITS,
    TERMS_NOTICE_SHIFT = TERMS_WINDOW_SHIFT + WINDOW_BITS,
};

_Static_assert(GW_WORLD_MAX == 1 << RANK_BITS, "ranks, and the number of workers less 1");
_Static_assert(GW_FAN_IN_MAX == 1 << POSITION_BITS, "positions below a switch");
_Static_assert(GW_NOTICE_UNITS_MAX == (1 << NOTICE_BITS) - 1, "thresholds");

/* How numbers of one key differ: names in all bits, shards in the low ones, twins in the one above.
 */
#define SHARD_MASK (DIRECT_BIT - 1)
#define DIRECT_BIT (UINT32_C(1) << (GW_JOB_NAME_BITS - 1))
#define SHARD_STEP UINT32_C(0x9e3779b1) /* odd, so that no two shards of a job have one number */

uint32_t gw_job_number(uint32_t key, uint32_t name)
{
    uint32_t number = name & ((UINT32_C(1) << GW_JOB_NAME_BITS) - 1);
    return key << GW_JOB_NAME_BITS | (number ? number : 1);
}

uint32_t gw_job_key(uint32_t number)
{
    return number >> GW_JOB_NAME_BITS;
}

uint32_t gw_job_shard(uint32_t job, uint32_t shard)
{
    return (job & ~SHARD_MASK) | ((job + shard * SHARD_STEP) & SHARD_MASK);
}

uint32_t gw_job_shard_direct(uint32_t shard_job)
{
    return shard_job ^ DIRECT_BIT;
}

bool gw_job_has_shard(uint32_t job, uint32_t number)
{
    for (uint32_t shard = 0; shard < GW_JOB_SHARDS_MAX; shard++) {
        uint32_t other = gw_job_shard(job, shard);
        if (number == other || number == gw_job_shard_direct(other))
            return true;
    }
    return false;
}

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
        [GW_JOB_LIMIT] = "the job needs more than the worker was made for: more values in a "
                         "fragment, a larger window, or memory that is not there",
        [GW_JOB_SILENT] = "the server fell silent",
        [GW_JOB_STALLED] = "no result came for too long",
        [GW_JOB_OVERFLOW] = "a sum does not fit its type",
        [GW_JOB_MISMATCH] = "workers reduce tensors that differ",
        [GW_JOB_NOTICE] = "workers announce bursts differently, or with more than 75 packets",
        [GW_JOB_BROKEN] = "a rank does not keep to the protocol",
        [GW_JOB_BOUND] = "more results are missing than it allows: other ranks state other bounds",
    };
    return (uint32_t)reason < GW_JOB_REASONS ? texts[reason] : "unknown reason";
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

uint32_t gw_job_spot_pack(const struct gw_job_spot *spot, uint32_t workers)
{
    return put_bits(spot->above[1], POSITION_BITS, SPOT_ABOVE1_SHIFT) |
           put_bits(spot->above[0], POSITION_BITS, SPOT_ABOVE0_SHIFT) |
           put_bits(spot->fan_in, FAN_IN_BITS, SPOT_FAN_IN_SHIFT) |
           put_bits(spot->level, LEVEL_BITS, SPOT_LEVEL_SHIFT) |
           put_bits(spot->partials, PARTIALS_BITS, SPOT_PARTIALS_SHIFT) |
           put_bits(workers, WORKERS_BITS, SPOT_WORKERS_SHIFT);
}

struct gw_job_spot gw_job_spot_unpack(uint32_t word, uint32_t *workers)
{
    *workers = get_bits(word, WORKERS_BITS, SPOT_WORKERS_SHIFT);
    return (struct gw_job_spot){
        .level = (uint8_t)get_bits(word, LEVEL_BITS, SPOT_LEVEL_SHIFT),
        .partials = (uint8_t)get_bits(word, PARTIALS_BITS, SPOT_PARTIALS_SHIFT),
        .fan_in = (uint8_t)get_bits(word, FAN_IN_BITS, SPOT_FAN_IN_SHIFT),
        .above = {(uint8_t)get_bits(word, POSITION_BITS, SPOT_ABOVE0_SHIFT),
                  (uint8_t)get_bits(word, POSITION_BITS, SPOT_ABOVE1_SHIFT)},
    };
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
              put_bits(terms->window, WINDOW_BITS, TERMS_WINDOW_SHIFT) |
              put_bits(terms->notice, NOTICE_BITS, TERMS_NOTICE_SHIFT);
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
        .notice = (uint8_t)get_bits(word[2], NOTICE_BITS, TERMS_NOTICE_SHIFT),
    };
}
