package carry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// annotations returns those of a ServiceAccount on the hub that are carried, or those that aren't.
// What addresses the hub's deployers is none of either.
func (r Rules) annotations(account Object, carried bool) map[string]string {
	all := r.HubKeys.Projected(account.GetAnnotations())
	maps.DeleteFunc(all, func(key, _ string) bool { return r.AccountAnnotations.Has(key) != carried })
	return all
}

// maxNamed bounds the annotations that a note names.
const maxNamed = 5

// withoutAnnotations says which annotations of a ServiceAccount its copy lacks: without them, the
// Pods may have no rights in a cloud. A foreign ServiceAccount is the worker's matter.
func withoutAnnotations(s Snapshot, r Rules) string {
	if s.Source == nil || kindOf(s.Source) != ServiceAccount || isForeign(s, r) {
		return ""
	}
	lacks := r.annotations(s.Source, false)
	if s.Existing != nil {
		maps.DeleteFunc(lacks, func(key, _ string) bool { _, has := s.Existing.GetAnnotations()[key]; return has })
	}
	if len(lacks) == 0 {
		return ""
	}
	keys := slices.Sorted(maps.Keys(lacks))
	if more := len(keys) - maxNamed; more > 0 {
		keys = append(keys[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s is copied without the annotations that may give its Pods rights (%s): allow these on the hub "+
		"(carry.serviceAccountAnnotations), or create the ServiceAccount in the worker", s.Ref, strings.Join(keys, ", "))
}
