/*
 * Faults for tests: what a job does wrong on purpose with packets that it sends, as the variable
 * GRADWIRE_FAULTS of the environment says (CONTRIBUTING.md). No option of a job asks for them.
 */
#ifndef GW_LIB_FAULTS_H
#define GW_LIB_FAULTS_H

#include "net/datapath.h"

#define GW_FAULTS_VARIABLE "GRADWIRE_FAULTS"

/*
 * Reads words such as "lose=0.01,duplicate=1%,delay=0.01,seed=7": chances of at most a half, and a
 * whole number. What is left out is 0. Returns GRADWIRE_OK, or GRADWIRE_ERR_INVALID with `error`
 * filled.
 */
int gw_faults_parse(const char *text, struct gw_datapath_faults *faults, char *error);

#endif
