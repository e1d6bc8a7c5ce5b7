/* The topology's routes in the switches' tables; see routes.c. */
#ifndef GW_SIM_ROUTES_H
#define GW_SIM_ROUTES_H

#include "sim/sim_impl.h"

/* Packs the topology's routes into every switch's tables, and renews the labels of paths. */
void gw_sim_install_routes(struct gw_sim *sim);

#endif
