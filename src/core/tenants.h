/*
 * Tenants, and the places that they share.
 *
 * A tenant is a key. A table with places for sessions or jobs belongs to all keys that are listed:
 * of one half of its places each key has an equal part for itself, the other half is for who comes
 * first. So whatever others do, a key finds as many places as its part of the half.
 */
#ifndef GW_CORE_TENANTS_H
#define GW_CORE_TENANTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GW_TENANTS_MAX = 32,
};

/* The keys that are listed, as job numbers have them (gw_job_key()). */
struct gw_tenants {
    uint32_t keys[GW_TENANTS_MAX];
    uint32_t count; /* 0: all jobs are of one tenant */
};

/* What a tenant has of a switch or server now, and what it was refused since that began. Each part
 * of the daemon adds what it knows. */
struct gw_tenant_use {
    uint32_t sessions;
    uint32_t jobs;
    uint32_t aggregators;
    uint64_t sessions_refused; /* questions of those for whom there was no place */
    uint64_t jobs_refused;     /* likewise */
    uint64_t yielded;          /* aggregators that jobs below their share took over from its jobs */
    uint64_t forbidden;        /* packets of its hosts that they may not send */
};

/* Which of them has a job of that number; `count`: none. */
uint32_t gw_tenants_of(const struct gw_tenants *tenants, uint32_t job);

/*
 * Whether tenant `who` may take one more of `places`, of which `left` are free; held[i] is how many
 * tenant i has, of `count`. Who is none of them takes what is left by all others' parts.
 */
bool gw_tenants_have_place(const uint32_t *held, uint32_t count, uint32_t who, uint32_t places,
                           uint32_t left);

#endif
