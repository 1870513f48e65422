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

// codec compresses Jobs. Any goroutine may use it. Most bytes of a Job are names and defaults,
// which are in the dictionary.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

var jobCodec = newCodec(usualBytes())

func newCodec(dictionary []byte) codec {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(dictionaryID, dictionary), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		panic(fmt.Sprintf("zstd: %v", err)) // can't be: the options are constants
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(dictionaryID, dictionary), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(fmt.Sprintf("zstd: %v", err)) // likewise
	}
	return codec{encoder, decoder}
}

func (c codec) compress(data []byte) []byte { return c.encoder.EncodeAll(data, nil) }

func (c codec) decompress(data []byte) ([]byte, error) {
	return c.decoder.DecodeAll(data, nil) //nolint:wrapcheck // the caller says which Job
}
