// Locations: names of values, and where in the source an operation comes from.
#include "ir/core/op.h"

MlirLocation hec_loc_file(MlirContext c, const char *file, unsigned line, unsigned column) {
    return mlirLocationFileLineColGet(c, HEC_STR(file), line, column);
}

MlirLocation hec_loc_named(const char *name, MlirLocation at) {
    return name ? mlirLocationNameGet(mlirLocationGetContext(at), HEC_STR(name), at) : at;
}

MlirStringRef hec_loc_name(MlirLocation at) {
    return mlirLocationIsAName(at) ? mlirIdentifierStr(mlirLocationNameGetName(at))
                                   : mlirStringRefCreate("", 0);
}

MlirLocation hec_loc_strip(MlirLocation at) {
    while (mlirLocationIsAName(at)) at = mlirLocationNameGetChildLoc(at);
    return at;
}

// The first value of a loop's carried argument; null for anything else, also for the loop's index.
static MlirValue initial_of(MlirValue value) {
    if (!mlirValueIsABlockArgument(value)) return (MlirValue){0};
    const MlirOperation parent = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    const int index = (int)mlirBlockArgumentGetArgNumber(value);
    if (!hec_op_is(parent, HEC_OP_FOR) || index == 0) return (MlirValue){0};
    const struct hec_for loop = hec_for_of(parent);
    return hec_for_init(&loop, index - 1);
}

// scf.for's syntax drops the locations of its block arguments, so a carried value takes the name
// of its initial value. Index arguments (the layer) have none.
MlirStringRef hec_value_name(MlirValue value) {
    for (;;) {
        const MlirStringRef name = hec_loc_name(mlirValueGetLocation(value));
        const MlirValue initial = initial_of(value);
        if (name.length || mlirValueIsNull(initial)) return name;
        value = initial;
    }
}

static MlirValue first_of(MlirValue value) {
    for (MlirValue from = value; !mlirValueIsNull(from); from = initial_of(from)) value = from;
    return value;
}

MlirLocation hec_value_location(MlirValue v) {
    return mlirValueGetLocation(first_of(v));
}

void hec_builder_for(struct hec_builder *b, MlirOperation op) {
    b->at = mlirOperationGetLocation(op);
    b->unit = hec_unit_of(op);
}

void hec_builder_for_value(struct hec_builder *b, MlirValue v) {
    const MlirValue first = first_of(v);
    const MlirOperation made = hec_defining(first);
    b->at = mlirValueGetLocation(first);
    b->unit = made.ptr ? hec_unit_of(made) : (MlirAttribute){0};
}

bool hec_loc_resolve(MlirLocation at, struct hec_location *location) {
    *location = (struct hec_location){0};
    at = hec_loc_strip(at);
    while (mlirLocationIsACallSite(at)) at = hec_loc_strip(mlirLocationCallSiteGetCallee(at));
    if (!mlirLocationIsAFileLineColRange(at)) return false;
    location->file = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(at));
    location->line = (unsigned)mlirLocationFileLineColRangeGetStartLine(at);
    location->column = (unsigned)mlirLocationFileLineColRangeGetStartColumn(at);
    return true;
}
