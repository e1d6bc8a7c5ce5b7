/* Options of a job: from the environment, and checked. */
#ifndef GW_LIB_OPTIONS_H
#define GW_LIB_OPTIONS_H

#include "gradwire.h"
#include "lib/io.h"

/* Checks the options and fills the plan. Returns GRADWIRE_OK, or an error with `error` filled. */
int gw_options_plan(const struct gradwire_options *options, struct gw_io_plan *plan, char *error);

#endif
