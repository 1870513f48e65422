package objectnames

import "k8s.io/apimachinery/pkg/types"

// ID is that of an object among those of its kind. What names its owner by a UID alone may be in
// another namespace, where anybody may have made it.
type ID struct {
	Namespace string
	UID       types.UID
}
