package packed

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// dictionaryID is only compared: the bytes never leave the process.
	dictionaryID = 1
	// window is how far apart repetitions are found, dictionary included. Each encoder has buffers of
	// twice its size.
	window = 64 << 10
)

// Codec compresses small objects of one kind. Any goroutine may use it. Most bytes of such an
// object are names and defaults, which are in the dictionary.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

var jobCodec = NewCodec(usualBytes())

// NewCodec returns a Codec with a dictionary, which is what objects have in common.
func NewCodec(dictionary []byte) Codec {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(dictionaryID, dictionary), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		panic(fmt.Sprintf("zstd: %v", err)) // can't be: the options are constants
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(dictionaryID, dictionary), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(fmt.Sprintf("zstd: %v", err)) // likewise
	}
	return Codec{encoder, decoder}
}

// Pack returns protobuf compressed.
func (c Codec) Pack(proto []byte) string {
	b := takeBuffers()
	defer b.giveBack()
	b.packed = c.encoder.EncodeAll(proto, b.packed[:0])
	return string(b.packed)
}

// Unpack reads what Pack returned into an object, which copies what it keeps.
func (c Codec) Unpack(packed string, into interface{ Unmarshal([]byte) error }) error {
	b := takeBuffers()
	defer b.giveBack()
	b.packed = append(b.packed[:0], packed...)
	var err error
	if b.proto, err = c.decoder.DecodeAll(b.packed, b.proto[:0]); err == nil {
		err = into.Unmarshal(b.proto)
	}
	return err //nolint:wrapcheck // the caller says which object
}

// buffers are used again by whoever packs or unpacks next.
type buffers struct{ packed, proto []byte }

var unused = sync.Pool{New: func() any { return new(buffers) }}

func takeBuffers() *buffers { return unused.Get().(*buffers) } //nolint:forcetypeassert // nothing else is in it

// maxBuffer bounds what is kept for the next: objects of the usual size have a twentieth of it.
const maxBuffer = 32 << 10

func (b *buffers) giveBack() {
	if cap(b.packed)+cap(b.proto) <= maxBuffer {
		unused.Put(b)
	}
}
