{
  "algorithm": "Ed25519",
  "context": "ppdp-certificate-signature/1",
  "certificate": "sha256:c69e875a552e966214c831ae76335280c42bdbe97655e5aa94872485cc8431c3",
  "key": "sha256:c1a9e7555f247123c2ab4722202d4dfabecc1796111d38496fa5feaa2d883259",
  "signature": "Ru8fVRfyjTIUb7UtbcguTIowmojd1hWkEbe4kTuv45yEtveYt7peRKacByNIyBUdrk7VxtQdNJtnFPYMItzQDw=="
}
