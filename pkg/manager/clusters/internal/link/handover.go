package link

import (
	"errors"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobferry/jobferry/pkg/util/frames"
)

// serializers decode the events of each watch from where they were read: client-go's decoder would
// copy them into a buffer that is as large as the largest one for as long as the watch lasts.
type serializers struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes is called for each watch.
func (s serializers) SupportedMediaTypes() []runtime.SerializerInfo {
	all := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())
	for i := range all {
		if stream := all[i].StreamSerializer; stream != nil {
			h := &handover{Serializer: stream.Serializer, Framer: stream.Framer}
			all[i].StreamSerializer = &runtime.StreamSerializerInfo{EncodesAsText: stream.EncodesAsText, Serializer: h, Framer: h}
		}
	}
	return all
}

// handover hands the events of a watch from its reader to its decoder. They are called in turn.
type handover struct {
	runtime.Serializer
	runtime.Framer

	event []byte
}

// NewFrameReader returns a reader that passes nothing but the ends of events.
func (h *handover) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &eventReader{h.Framer.NewFrameReader(r), h}
}

// Decode decodes the last event that was read.
func (h *handover) Decode(_ []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event := h.event
	if h.event = event[:0]; cap(event) > 2*frames.UsualBytes { // before the next event is waited for
		h.event = nil
	}
	return h.Serializer.Decode(event, defaults, into)
}

type eventReader struct {
	io.ReadCloser
	to *handover
}

func (r *eventReader) Read([]byte) (int, error) {
	event := r.to.event[:0]
	for {
		event = slices.Grow(event, 1<<10)
		n, err := r.ReadCloser.Read(event[len(event):cap(event)])
		event = event[:len(event)+n]
		if !errors.Is(err, io.ErrShortBuffer) {
			r.to.event = event
			return 0, err //nolint:wrapcheck // io.EOF ends the watch
		}
	}
}
