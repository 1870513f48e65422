package quantities

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

// HasCostlyObject reports whether an object in JSON has a costly quantity, if it's decoded by a
// client of some kinds. What has no kind, or one that isn't known of its group, counts as having a
// quantity wherever a text looks like one. Of another group a client decodes nothing: who reads
// such objects, as Karpenter's, uses Parse.
func HasCostlyObject(text []byte, kinds *runtime.Scheme) bool { return costlyBy(text, kinds, true) }

// HasCostlyWithKind is HasCostlyObject for what no client decodes as an object without a kind: an
// error, such as a proxy's, and a version. Then it isn't looked at.
func HasCostlyWithKind(text []byte, kinds *runtime.Scheme) bool { return costlyBy(text, kinds, false) }

// HasCostlyEvent is HasCostlyObject for an event of a watch. It has no kind, and its object is of
// its own one; what has a kind is decoded as that first. Of objects that are there twice, either
// may be decoded.
func HasCostlyEvent(text []byte, kinds *runtime.Scheme) bool {
	if !MayHaveCostly(text) {
		return false
	}
	costly, s := costlyBy(text, kinds, false), jsonscan.New(text)
	s.Object(func(name []byte) {
		if strings.EqualFold(string(name), "object") {
			costly = HasCostlyObject(s.Skip(), kinds) || costly
		}
	})
	return costly
}

// costlyBy is HasCostlyObject; withoutKind: also of what has no kind.
func costlyBy(text []byte, kinds *runtime.Scheme, withoutKind bool) bool {
	if !MayHaveCostly(text) {
		return false
	}
	kind, err := kjson.DefaultMetaFactory.Interpret(text)
	if err != nil {
		return false // no client can decode it, either
	}
	known, err := kinds.New(*kind)
	switch {
	case err == nil:
		return HasCostlyJSON(text, reflect.TypeOf(known).Elem())
	case kind.Kind == "" && !withoutKind, kind.Kind != "" && !kinds.IsGroupRegistered(kind.Group):
		return false
	default:
		return HasCostlyJSON(text, nil)
	}
}
