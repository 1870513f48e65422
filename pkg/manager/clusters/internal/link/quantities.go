package link

import (
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// HasCostlyQuantity reports whether an object in JSON has a quantity that mayn't be decoded.
func HasCostlyQuantity(object []byte) bool {
	return quantities.HasCostlyObject(object, scheme.Scheme)
}
