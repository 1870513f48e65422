package link

import (
	"reflect"

	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// HasCostlyQuantity reports whether an object in JSON has a quantity that mayn't be decoded. Of a
// kind that client-go doesn't know, each text that looks like one counts.
func HasCostlyQuantity(object []byte) bool {
	if !quantities.MayHaveCostly(object) {
		return false
	}
	kind, err := kjson.DefaultMetaFactory.Interpret(object)
	if err != nil {
		return false // client-go can't decode it, either
	}
	var of reflect.Type
	if known, err := scheme.Scheme.New(*kind); err == nil {
		of = reflect.TypeOf(known).Elem()
	}
	return quantities.HasCostlyJSON(object, of)
}
