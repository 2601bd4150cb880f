{
  "algorithm": "Ed25519",
  "context": "ppdp-certificate-signature/1",
  "certificate": "sha256:4c7c16b457c8983da308861b4447bde3312579102fa9490c630bd156cad7d581",
  "key": "sha256:b2001bbae5dfa1bb0d3edbc0f50df2ee2beb1d45e5fa21193e25cba71124b409",
  "signature": "Db8e8ZMsKFrLETx58LVNxZ+oUOo5rm2geYb3KQvfmOET4AvwDki4akGBMbPb7L1kvxuNBrpxXlkXphatClckBQ=="
}
