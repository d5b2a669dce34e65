#include "passes/distribute/picks.h"

#include "ir/accessors.h"

// Whether `limit` takes all that the route gives, and nothing else does.
static bool takes_all(const struct hec_routed *x, MlirOperation limit) {
    const MlirValue given[] = {hec_route_first(x->route), hec_route_pair(x->route),
                               hec_route_slot(x->route)};
    const MlirValue taken[] = {hec_limit_first(limit), hec_limit_pair(limit),
                               hec_limit_slot(limit)};
    for (int i = 0; i < 3; i++) {
        const MlirValue v = given[i];
        if (!mlirValueEqual(taken[i], v)) return false;
        HEC_EACH_USE (use, v) {
            if (!mlirOperationEqual(mlirOpOperandGetOwner(use), limit)) return false;
        }
    }
    return true;
}

// A capacity is one over the tokens of all ranks: behind the router they drop top-k choices together, in place
// of the limit, and the route is that of the others.
static MlirOperation drop_together(struct hec_routed *x, struct hec_builder *b,
                                   MlirOperation router) {
    const MlirOperation limit = x->limit;
    const MlirValue in[] = {hec_router_ids(router), hec_router_weights(router)};
    if (!mlirValueEqual(hec_limit_weights(limit), in[1]))
        hec_routed_fail(x, limit, "not yet: drops by weights that are not the router's");
    if (!takes_all(x, limit)) hec_routed_fail(x, limit, "limits some of the route's rows");
    const MlirType type = mlirValueGetType(in[0]);
    const MlirOperation drop =
        hec_routed_build(b, x, HEC_OP_drop, 2, in, (MlirValue){0}, x->layer, 1, &type);
    hec_any_put_capacity(drop, hec_limit_capacity(limit));
    hec_set_attr(drop, hec_attr(b->context, "drop", hec_get_attr(limit, "drop")));
    if (hec_limit_has_group(limit)) hec_drop_put_group(drop, hec_limit_group(limit));
    hec_set_put_limited(x->set, true);
    hec_route_set_ids(x->route, hec_drop_kept(drop));
    mlirValueReplaceAllUsesOfWith(hec_limit_kept_first(limit), hec_route_first(x->route));
    mlirValueReplaceAllUsesOfWith(hec_limit_kept_pair(limit), hec_route_pair(x->route));
    mlirValueReplaceAllUsesOfWith(hec_limit_kept_slot(limit), hec_route_slot(x->route));
    mlirOperationDestroy(limit);
    x->limit = (MlirOperation){0};
    return drop;
}

void hec_settle_picks(struct hec_routed *x, MlirOperation router) {
    struct hec_builder b = hec_builder_before(mlirOperationGetNextInBlock(router));
    hec_builder_for(&b, router);
    b.at = hec_loc_strip(b.at);
    MlirValue ids = hec_router_ids(router);
    if (x->limit.ptr) ids = hec_drop_kept(drop_together(x, &b, router));
    if (x->move)
        hec_routed_build(&b, x, HEC_OP_exchange, 1, &ids, (MlirValue){0}, x->layer, 0, NULL);
}
