"""Steps for generations, for any `CompanyIndex`: create the first, re-embed, evaluate, promote, roll back, retire."""
