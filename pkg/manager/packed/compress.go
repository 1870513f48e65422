package packed

import (
	"fmt"

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

// Compress returns the data compressed.
func (c Codec) Compress(data []byte) []byte { return c.encoder.EncodeAll(data, nil) }

// Decompress returns what Compress was given.
func (c Codec) Decompress(data []byte) ([]byte, error) {
	return c.decoder.DecodeAll(data, nil) //nolint:wrapcheck // the caller says which object
}
