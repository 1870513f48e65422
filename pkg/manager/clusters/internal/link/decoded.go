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
	"github.com/jobferry/jobferry/pkg/util/frames"
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

// checkObject returns what an object in protobuf becomes, or why it mayn't be decoded: it would be
// too large, or decoded refuses what it has. What client-go refuses to decode passes.
func checkObject(data []byte) (size int64, err error) {
	raw, ok := bytes.CutPrefix(data, frames.Magic)
	if !ok {
		return 0, nil
	}
	envelope, ok := unwrap(raw)
	if !ok {
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
	of, err := typeOf(kinds, gv.WithKind(envelope.Kind))
	if err != nil {
		return 0, errTooLarge // without a kind, client-go takes it for what it has asked for
	}
	size, err = decoded.Message(of, envelope.Raw, maxDecodedBytes)
	if err == nil && size > maxDecodedBytes {
		err = errTooLarge
	}
	return size, err
}

// unwrap returns the envelope of an object, whose content isn't copied if it needn't be.
func unwrap(raw []byte) (envelope runtime.Unknown, ok bool) {
	var meta, apiVersion, kind, encoding, contentType []byte
	if decoded.Plain(raw, &meta, &envelope.Raw, &encoding, &contentType) && decoded.Plain(meta, &apiVersion, &kind) {
		envelope.APIVersion, envelope.Kind = string(apiVersion), string(kind)
		return envelope, true
	}
	envelope = runtime.Unknown{}
	return envelope, envelope.Unmarshal(raw) == nil
}

func typeOf(kinds *runtime.Scheme, kind schema.GroupVersionKind) (reflect.Type, error) {
	if of := kinds.AllKnownTypes()[kind]; of != nil {
		return of, nil
	}
	object, err := kinds.New(kind) // it may be of no version
	if err != nil {
		return nil, err
	}
	return reflect.TypeOf(object).Elem(), nil
}

// checkEvent is checkObject for an event of a watch.
func checkEvent(frame []byte) (size int64, err error) {
	var kind, object, raw []byte
	if decoded.Plain(frame, &kind, &object) && decoded.Plain(object, &raw) {
		return checkObject(raw)
	}
	var event metav1.WatchEvent
	if event.Unmarshal(frame) != nil {
		return 0, nil
	}
	return checkObject(event.Object.Raw)
}
