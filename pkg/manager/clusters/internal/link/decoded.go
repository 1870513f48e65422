package link

import (
	"bytes"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// metadata has the kinds of answers that are the metadata of objects of any kind.
var metadata = func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(kinds))
	kinds.AddUnversionedTypes(metav1.Unversioned, &metav1.Status{}) // in each group, as client-go reads it
	return kinds
}()

// maxDecodedBytes bounds what an answer, or an event of a watch, may become in memory: in protobuf
// two bytes are a Pod, which is a struct of more than a kilobyte.
const maxDecodedBytes = 64 << 20

// magic begins each object in protobuf.
var magic = []byte("k8s\x00")

// checkObject returns what an object in protobuf becomes, or why it mayn't be decoded: it would be
// too large, or decoded refuses what it has. What client-go refuses to decode passes.
func checkObject(data []byte) (size int64, err error) {
	raw, ok := bytes.CutPrefix(data, magic)
	var envelope runtime.Unknown
	if !ok || envelope.Unmarshal(raw) != nil {
		return 0, nil
	}
	gv, err := schema.ParseGroupVersion(envelope.APIVersion)
	if err != nil {
		return 0, errTooLarge // likewise, see below
	}
	kinds := scheme.Scheme
	if gv.Group == metav1.GroupName {
		kinds = metadata
	}
	object, err := kinds.New(gv.WithKind(envelope.Kind))
	if err != nil {
		return 0, errTooLarge // without a kind, client-go takes it for what it has asked for
	}
	size, err = decoded.Message(reflect.TypeOf(object).Elem(), envelope.Raw, maxDecodedBytes)
	if err == nil && size > maxDecodedBytes {
		err = errTooLarge
	}
	return size, err
}

// checkEvent is checkObject for an event of a watch.
func checkEvent(frame []byte) (size int64, err error) {
	var event metav1.WatchEvent
	if event.Unmarshal(frame) != nil {
		return 0, nil
	}
	return checkObject(event.Object.Raw)
}
